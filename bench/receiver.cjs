// A minimal webhook receiver: it reads each POST and answers 200 with an empty body. It runs in a process of
// its own so that it takes no time from the measured code. `GET /n` is answered after n POSTs since the last
// `DELETE /`. A POST to /never gets no answer and does not count. One to /slow is answered after 20 ms. It
// keeps the arrival time (epoch milliseconds) of each POST to /timed with the block of its event, and
// `GET /arrivals` returns all of them.
/* global Buffer, console, performance, setTimeout */
'use strict';

const { createServer } = require('node:http');

const SLOW_MS = 20;

let count = 0;
let waiting = [];
let arrivals = [];

function answerWaiting() {
  const reached = waiting.filter(({ target }) => count >= target);
  waiting = waiting.filter(({ target }) => count < target);
  for (const { response } of reached) response.end();
}

function noteArrival(body) {
  const [, block] = /"blockNumber":(\d+)/.exec(body);
  arrivals.push([Number(block), performance.timeOrigin + performance.now()]);
}

const server = createServer((request, response) => {
  if (request.url === '/never') return void request.resume();
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.url === '/arrivals') {
      response.end(JSON.stringify(arrivals));
    } else if (request.method === 'GET') {
      waiting.push({ target: Number(request.url.slice(1)), response });
    } else if (request.method === 'DELETE') {
      count = 0;
      arrivals = [];
      response.end();
    } else {
      if (request.url === '/timed') noteArrival(Buffer.concat(chunks).toString());
      count++;
      if (request.url === '/slow') setTimeout(() => response.writeHead(200).end(), SLOW_MS);
      else response.writeHead(200).end();
    }
    answerWaiting();
  });
});

server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
