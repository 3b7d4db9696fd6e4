// Another sender that uses the service's wallet all the time, in a separate process. The node signs its
// transactions, so they always have the next nonce. On SIGTERM it prints their hashes and ends.
/* global console, fetch, process, setTimeout */
'use strict';

const EVERY_MS = 50;
const [, , url, from] = process.argv;
const hashes = [];
let isOver = false;

async function send() {
  const transaction = { from, to: from, value: '0x1', gas: '0x5208' };
  const call = { jsonrpc: '2.0', id: 1, method: 'eth_sendTransaction', params: [transaction] };
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(call) });
  const { result, error } = await answer.json();
  if (error) throw new Error(error.message);
  hashes.push(result);
  if (hashes.length === 1) console.log('sending');
}

async function sendAllTheTime() {
  while (!isOver) {
    await send();
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  console.log(`sent ${JSON.stringify(hashes)}`);
  process.exit(0);
}

process.on('SIGTERM', () => (isOver = true));
void sendAllTheTime();
