import { statSync, type Stats } from 'node:fs';

/**
 * Warnings for the env file, the configuration file and the folder of the database, if others than their
 * owner may read or change them. A file or folder that does not exist yet will be made with the right mode.
 *
 * @param dataDir undefined: the state is elsewhere.
 */
export function exposedFiles(
  files: { envFile: string; configFile: string },
  dataDir: string | undefined,
): string[] {
  // File modes on Windows do not tell who may read a file.
  if (process.platform === 'win32') return [];
  const folder = dataDir === undefined ? undefined : statsOf(dataDir);
  const warnings: string[] = [];
  for (const [setting, path, holds] of [
    ['ENV_FILE', files.envFile, 'holds secrets'],
    ['SERVICE_CONFIG', files.configFile, 'may hold secrets'],
  ] as const) {
    const file = statsOf(path);
    if (!file?.isFile() || !isExposed(file)) continue;
    const which = `${path} (mode ${modeOf(file)}), which ${holds}`;
    warnings.push(`${setting}: others can read ${which}: run \`chmod 600 ${path}\``);
  }
  if (folder?.isDirectory() && isExposed(folder))
    warnings.push(
      `DATA_DIR: others can look into ${dataDir} (mode ${modeOf(folder)}): run \`chmod 700 ${dataDir}\``,
    );
  return warnings;
}

/** Undefined if the path cannot be read: the code that opens it reports the error. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function isExposed({ mode }: Stats): boolean {
  return (mode & 0o077) !== 0;
}

function modeOf({ mode }: Stats): string {
  return (mode & 0o777).toString(8);
}
