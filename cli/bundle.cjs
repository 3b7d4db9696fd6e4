const { spawnSync } = require('node:child_process');
const { readdirSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { buildSync, context } = require('esbuild');

// Makes each program one file in dist/, which loads in a third of the time. `--watch` does so again whenever
// the sources change. `--unbundled COMMAND` makes each source a file of its own while the command runs.

exports.OPTIONS = {
  absWorkingDir: join(__dirname, '..'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  mainFields: ['module', 'main'],
  logLevel: 'warning',
  external: [
    // Native, or optional.
    'libsql',
    'pg-native',
    '@ngrok/ngrok',
    'pkcs11js',
    // These load files that lie beside them.
    'tiny-secp256k1',
    // Development only.
    'hardhat',
  ],
  // Packages bring each context as a module, and the URL of a file with the same content. Nothing reads that
  // URL.
  define: { 'import.meta.url': '"file:///"' },
  // JSON-LD's own client, which nothing uses, is as much code as the rest of a signing thread.
  alias: { '@digitalbazaar/http-client': 'node:http' },
};

exports.ENTRY_POINTS = [
  'cli/main.ts',
  'client/create-client.ts',
  'client/credentials.ts',
  'client/deliveries.ts',
  'client/events.ts',
  'devnet/main.ts',
  'devnet/start-devnet.ts',
  'receiver/main.ts',
  'service/answers/checking-process.ts',
  'evidence/evidence.ts',
  'service/issuance/signing-worker.ts',
  'service/keys/pkcs11-thread.ts',
  'service/main.ts',
  'service/validation/validate-bill-of-lading.ts',
];

const PROGRAMS = {
  ...exports.OPTIONS,
  entryPoints: exports.ENTRY_POINTS,
  outbase: '.',
  outdir: 'dist',
  sourcemap: true,
  sourcesContent: false,
};

/** The console's page, for browsers that have AbortSignal.any. */
const PAGE = {
  absWorkingDir: exports.OPTIONS.absWorkingDir,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome120', 'firefox124', 'safari17.4'],
  logLevel: 'warning',
  entryPoints: [
    { in: 'console/index.html', out: 'index' },
    { in: 'console/main.tsx', out: 'app' },
    { in: 'console/styles/main.css', out: 'app' },
  ],
  loader: { '.html': 'copy' },
  outdir: 'dist/console',
};

/** With `--unbundled`: reports of coverage cannot tell the sources of a bundle apart. */
const FOLDERS = ['cli', 'client', 'deploy', 'devnet', 'evidence', 'receiver', 'service', 'typechain-types'];

const UNBUNDLED = {
  ...PROGRAMS,
  bundle: false,
  external: undefined,
  alias: undefined,
  entryPoints: [...FOLDERS.map((folder) => `${folder}/**/*.ts`), 'service/**/*.json'],
  loader: { '.json': 'copy' },
};

const DESCRIBED_IN = join(__dirname, '../client/description');

/** Writes what is made of the sources of the API's description, before the programs that use it are made. */
const DESCRIPTION = {
  name: 'description of the API',
  setup({ onStart, onResolve }) {
    // No program imports these files, so a change of them would start no build.
    const watchFiles = readdirSync(DESCRIBED_IN).map((name) => join(DESCRIBED_IN, name));
    onResolve({ filter: /./ }, ({ kind, path, resolveDir }) =>
      kind === 'entry-point' ? { path: join(resolveDir, path), watchFiles } : undefined,
    );
    onStart(() => {
      const { status, stderr, error } = spawnSync('npm', ['run', '--silent', 'api-types'], {
        cwd: exports.OPTIONS.absWorkingDir,
        encoding: 'utf8',
        shell: process.platform === 'win32',
      });
      if (status !== 0) return { errors: [{ text: `The API cannot be described: ${error ?? stderr}` }] };
    });
  },
};

/** Whatever becomes of the command, the bundled programs are in dist/ afterwards, and nothing else. */
function runUnbundled([command, ...args]) {
  // A signal ends the command.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
  try {
    buildSync(UNBUNDLED);
    process.exitCode =
      spawnSync(command, args, { stdio: 'inherit', shell: process.platform === 'win32' }).status ?? 1;
  } finally {
    for (const folder of FOLDERS)
      rmSync(join(__dirname, '../dist', folder.split('/')[0]), { recursive: true, force: true });
    buildSync(PROGRAMS);
  }
}

if (require.main === module) {
  const [flag, ...command] = process.argv.slice(2);
  if (flag === '--unbundled') runUnbundled(command);
  else
    for (const options of [PROGRAMS, PAGE])
      if (flag === '--watch') {
        const plugins = options === PROGRAMS ? [DESCRIPTION] : [];
        void context({ ...options, plugins, logLevel: 'info' }).then((sources) => sources.watch());
      } else buildSync(options);
}
