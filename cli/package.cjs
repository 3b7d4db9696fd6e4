const { execFileSync } = require('node:child_process');
const { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { extname, join, resolve } = require('node:path');
require('./build-if-changed.cjs');
const { ENTRY_POINTS } = require('./bundle.cjs');
const manifest = require('../package.json');

// `npm run package` packs what users of the package need: the build with its types, the command `tdoc`, the
// contexts and the documentation. Arguments: the folder for the tarball; --without-types leaves the types as they are.
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
  'deploy/monitoring',
  'devnet/end-with-parent.cjs',
  'devnet/node.config.cjs',
  'dist/api',
  'docs',
  'evidence/evidence-page.html',
  ...ENTRY_POINTS.map((name) => join('dist', name.replace(/\.ts$/, '.js'))),
];
// The second is the page that a browser loads.
const IF_BUILT = ['dist/types', 'dist/console'];
const LEFT_OUT = ['.map', '.png'];

const [folder = '.'] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const run = (script, args) =>
  execFileSync(process.execPath, [script, ...args], { cwd: ROOT, stdio: 'inherit' });
// On Windows npm is no program but a script, which needs a shell and its quotes.
const NPM = process.env.npm_execpath ?? join(process.execPath, '../../lib/node_modules/npm/bin/npm-cli.js');

if (!process.argv.includes('--without-types')) {
  rmSync(join(ROOT, 'dist/types'), { recursive: true, force: true });
  run(require.resolve('typescript/bin/tsc'), ['--project', 'tsconfig.types.json']);
  // Without it, a reader of the types would need `resolveJsonModule`.
  const codes = Object.keys(require('../service/base/error-codes.json')).map((code) => `'${code}'`);
  const declaration = `declare const codes: Record<${codes.join(' | ')}, object>;\nexport default codes;\n`;
  writeFileSync(join(ROOT, 'dist/types/service/base/error-codes.json.d.ts'), declaration);
}
const stage = mkdtempSync(join(tmpdir(), 'tdoc-package-'));
try {
  for (const name of [...FILES, ...IF_BUILT.filter((built) => existsSync(join(ROOT, built)))])
    cpSync(join(ROOT, name), join(stage, name), {
      recursive: true,
      filter: (path) => !LEFT_OUT.includes(extname(path)),
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
  run(NPM, ['pack', stage, '--silent', '--pack-destination', resolve(folder)]);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
