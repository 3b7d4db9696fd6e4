const { join } = require('node:path');
const { buildSync, context } = require('esbuild');

// Makes each program one file in dist/, which loads in a third of the time. `--watch` does so again whenever
// the sources change; `--unbundled` makes each source a file of its own.

exports.OPTIONS = {
  absWorkingDir: join(__dirname, '..'),
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  mainFields: ['module', 'main'],
  // Class names appear in logs.
  keepNames: true,
  logLevel: 'warning',
  external: [
    // Native, or optional.
    'libsql',
    'pg-native',
    '@ngrok/ngrok',
    // These load files that lie beside them.
    '@digitalbazaar/*',
    'jsonld',
    'jsonld-signatures',
    'piscina',
    // Development only.
    'hardhat',
  ],
};

exports.ENTRY_POINTS = [
  'cli/main.ts',
  'client/create-client.ts',
  'client/credentials.ts',
  'devnet/main.ts',
  'devnet/start-devnet.ts',
  'receiver/main.ts',
  'receiver/verify-delivery.ts',
  'service/issuance/signing-worker.ts',
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

/** With `--unbundled`: reports of coverage cannot tell the sources of a bundle apart. */
const FOLDERS = ['cli', 'client', 'deploy/registry', 'devnet', 'receiver', 'service', 'typechain-types'];

if (require.main === module) {
  if (process.argv.includes('--watch'))
    void context({ ...PROGRAMS, logLevel: 'info' }).then((sources) => sources.watch());
  else if (process.argv.includes('--unbundled'))
    buildSync({
      ...PROGRAMS,
      bundle: false,
      external: undefined,
      entryPoints: FOLDERS.map((folder) => `${folder}/**/*.ts`),
    });
  else buildSync(PROGRAMS);
}
