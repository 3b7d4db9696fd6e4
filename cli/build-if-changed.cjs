const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, readdirSync, readFileSync, statSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const ROOT = join(__dirname, '..');
const STAMP = join(ROOT, 'dist/sources.stamp');
const SOURCES = [
  'cli',
  'client',
  'console',
  'contracts',
  'deploy/compile.ts',
  'deploy/published-contracts.ts',
  'devnet',
  'evidence',
  'hardhat.config.ts',
  'receiver',
  'service',
  'package-lock.json',
  'tsconfig.json',
];

// npm itself does not refuse: packages that are used in development only may not have a newer Node.js in their
// `engines` yet, and `engine-strict` would refuse that.
const LEAST = require('../package.json').engines.node.replace('>=', '');
if (LEAST.localeCompare(process.versions.node, undefined, { numeric: true }) > 0) {
  process.stderr.write(`Node.js ${LEAST} or newer is needed. This is ${process.versions.node}.\n`);
  process.exit(1);
}

/** The build makes it among the sources. */
const MADE = 'api-types.ts';

/** A hash over the names, sizes and modification times of all sources. */
function stampOf(names) {
  const hash = createHash('sha256');
  const add = (path) => {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  };
  for (const name of names) {
    const path = join(ROOT, name);
    if (!existsSync(path)) continue;
    if (!statSync(path).isDirectory()) add(path);
    else
      for (const entry of readdirSync(path, { recursive: true, withFileTypes: true }))
        if (entry.isFile() && entry.name !== MADE) add(join(entry.parentPath ?? entry.path, entry.name));
  }
  return hash.digest('hex');
}

// Nothing can be built without Hardhat or sources: a production installation and a package have their build.
if (existsSync(join(ROOT, 'node_modules/hardhat')) && existsSync(join(ROOT, 'tsconfig.json'))) {
  const stamp = stampOf(SOURCES);
  const isBuilt =
    existsSync(STAMP) &&
    ['typechain-types', 'client/api-types.ts', 'dist/api/openapi.json', 'dist/api/reference.html'].every(
      (made) => existsSync(join(ROOT, made)),
    );
  if (!isBuilt || readFileSync(STAMP, 'utf8') !== stamp) {
    process.stderr.write('building: the sources changed …\n');
    const { status } = spawnSync('npm', ['run', '--silent', 'compile'], {
      cwd: ROOT,
      // Standard output belongs to the command that runs after this.
      stdio: ['ignore', process.stderr, process.stderr],
      shell: process.platform === 'win32',
    });
    if (status !== 0) process.exit(status ?? 1);
    writeFileSync(STAMP, stamp);
  }
}
