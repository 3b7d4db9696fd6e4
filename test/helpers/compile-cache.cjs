/* global __dirname, process */
// Keeps what V8 compiles of the bundles that tests start: it is a third of the processor time of a start. A
// program started so cannot import dynamically. Node.js 22 has NODE_COMPILE_CACHE for this.
const { mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname, join, relative } = require('node:path');
const { Script } = require('node:vm');

const ROOT = join(__dirname, '../..');
const FOLDER = join(ROOT, 'node_modules/.cache/compiled');
const BUNDLES = join(ROOT, 'dist');
/** Unbundled files, of which coverage is measured, have fewer characters. */
const FEWEST = 200_000;

const compile = Module.prototype._compile;
Module.prototype._compile = function (content, path) {
  if (!path.startsWith(BUNDLES) || content.length < FEWEST) return compile.call(this, content, path);
  const file = join(FOLDER, `${relative(BUNDLES, path).replaceAll(/\W/g, '-')}-${process.version}`);
  const built = secondOf(path);
  // V8 compares only the length of the source.
  const cachedData = secondOf(file) === built ? readFileSync(file) : undefined;
  const script = new Script(Module.wrap(content), { filename: path, cachedData });
  // At its end, a program has compiled the functions that it calls.
  if (script.cachedDataRejected !== false)
    process.once('exit', () => keep(file, script.createCachedData(), built));
  const require = Object.assign(Module.createRequire(path), { main: process.mainModule });
  return script.runInThisContext().call(this.exports, this.exports, require, this, path, dirname(path));
};

/** When the file was written, in seconds. */
function secondOf(path) {
  const { mtimeMs = NaN } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return Math.floor(mtimeMs / 1_000);
}

/** Renames the file into its place: other programs may start now. */
function keep(file, data, built) {
  mkdirSync(FOLDER, { recursive: true });
  const written = `${file}-${process.pid}`;
  writeFileSync(written, data);
  utimesSync(written, built, built);
  renameSync(written, file);
}
