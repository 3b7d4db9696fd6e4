const { execFileSync } = require('node:child_process');
const { cpSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, join, resolve } = require('node:path');
require('./build-if-changed.cjs');
const manifest = require('../package.json');

// `npm run package` packs what users of the package need: the build with its types, the command `tdoc`, and the
// contexts. Arguments: the folder for the tarball; --without-types leaves the types as they are.
//
// `npm pack` cannot do it alone. In a checkout, `tdoc` is linked by a dependency on a folder, which a tarball
// cannot have; with a `bin` of the checkout's own, npx installs the whole checkout first, and fails where its
// files belong to somebody else, as in a container.

const ROOT = join(__dirname, '..');
const FILES = [
  'LICENSE',
  'README.md',
  'cli/build-if-changed.cjs',
  'cli/tdoc.cjs',
  'contexts',
  'devnet/end-with-parent.cjs',
  'devnet/node.config.cjs',
  'dist',
];

const [folder = '.'] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const run = (command, args) =>
  execFileSync(command, args, { cwd: ROOT, stdio: 'inherit', shell: process.platform === 'win32' });

if (!process.argv.includes('--without-types')) run('npx', ['tsc', '--project', 'tsconfig.types.json']);
const stage = mkdtempSync(join(tmpdir(), 'tdoc-package-'));
try {
  for (const name of FILES)
    cpSync(join(ROOT, name), join(stage, name), {
      recursive: true,
      filter: (path) => !path.endsWith('.map') && basename(path) !== 'sources.stamp',
    });
  // JSON leaves out what is undefined.
  const packed = {
    ...manifest,
    bin: { tdoc: 'cli/tdoc.cjs' },
    dependencies: { ...manifest.dependencies, tdoc: undefined },
    devDependencies: undefined,
    overrides: undefined,
    scripts: undefined,
  };
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  run('npm', ['pack', stage, '--silent', '--pack-destination', resolve(folder)]);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
