// Counts what the service costs. `--require` loads it into the service's process, where it answers each GET
// with the counts so far as JSON, and `GET /memory` with its memory after a garbage collection. Bytes are
// those that the process had the system write, as far as the system tells.
/* global console, process */
'use strict';

const { createServer } = require('node:http');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { isMainThread } = require('node:worker_threads');

const BLOCK_BYTES = 512;
const MIB = 1024 * 1024;

if (isMainThread) {
  const Sqlite = require('libsql');
  const { exec, prepare } = Sqlite.prototype;
  let commits = 0;
  let statements = 0;
  Sqlite.prototype.exec = function (sql) {
    if (sql === 'commit') commits++;
    return exec.call(this, sql);
  };
  Sqlite.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql);
    for (const name of ['all', 'run']) {
      const execute = statement[name];
      statement[name] = function (...values) {
        statements++;
        return execute.apply(this, values);
      };
    }
    return statement;
  };

  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc');

  const server = createServer(({ url }, response) => {
    if (url === '/memory') {
      collectGarbage();
      const { heapUsed, external, rss } = process.memoryUsage();
      const bytes = { usedMib: heapUsed + external, residentMib: rss };
      const figures = Object.entries(bytes).map(([name, count]) => [name, count / MIB]);
      return void response.end(JSON.stringify(Object.fromEntries(figures)));
    }
    const { user, system } = process.cpuUsage();
    const cpuMs = (user + system) / 1000;
    const writtenKib = (process.resourceUsage().fsWrite * BLOCK_BYTES) / 1024;
    response.end(JSON.stringify({ cpuMs, writtenKib, commits, statements }));
  });
  server.unref();
  server.listen(0, '127.0.0.1', () => console.log(`probe on http://127.0.0.1:${server.address().port}`));
}
