// Sends `GET /` to a service at fixed moments, whether or not earlier requests were answered: a pause of one
// second delays a hundred requests, not one. It runs in a process of its own so that nothing else delays it.
// When told to end, it prints the milliseconds from each moment to its answer.
/* global console, performance, process, setTimeout */
'use strict';

const { Agent, get } = require('node:http');

const EVERY_MS = 10;
const url = process.argv[2];
const agent = new Agent({ keepAlive: true });
const times = [];
let failures = 0;
let isOver = false;

function probe(dueAt) {
  const request = get(url, { agent }, (response) => {
    response.resume();
    response.on('end', () => times.push(performance.now() - dueAt));
  });
  request.on('error', () => {
    // Node.js closes idle connections. A connection that closed at this moment says nothing about the
    // service.
    if (request.reusedSocket) probe(dueAt);
    else failures++;
  });
}

const start = performance.now();
let asked = 0;
function tick() {
  if (isOver) return;
  for (; start + asked * EVERY_MS <= performance.now(); asked++) probe(start + asked * EVERY_MS);
  setTimeout(tick, start + asked * EVERY_MS - performance.now());
}

function finish() {
  if (times.length + failures < asked) return void setTimeout(finish, EVERY_MS);
  // A pipe takes a long line in parts.
  process.stdout.write(`probed ${JSON.stringify({ times, failures })}\n`, () => process.exit(0));
}

process.on('SIGTERM', () => {
  isOver = true;
  finish();
});
console.log('probing');
tick();
