// A minimal webhook receiver: it reads each POST and answers 200 with an empty body. It runs in a process of
// its own so that it takes no time from the measured code. `GET /n` is answered after n POSTs since the last
// `DELETE /`.
/* global console */
'use strict';

const { createServer } = require('node:http');

let count = 0;
let waiting = [];

function answerWaiting() {
  const reached = waiting.filter(({ target }) => count >= target);
  waiting = waiting.filter(({ target }) => count < target);
  for (const { response } of reached) response.end();
}

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    if (request.method === 'GET') {
      waiting.push({ target: Number(request.url.slice(1)), response });
    } else if (request.method === 'DELETE') {
      count = 0;
      response.end();
    } else {
      count++;
      response.writeHead(200).end();
    }
    answerWaiting();
  });
});

server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
