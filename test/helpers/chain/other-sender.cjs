// Another sender, in a separate process, that uses the service's wallet whenever the service has used it. The
// node signs its transactions, so they always have the next nonce. On SIGTERM it prints their hashes and
// ends.
/* global console, fetch, process, setTimeout */
'use strict';

const EVERY_MS = 50;
const [, , url, from] = process.argv;
const hashes = [];
let isOver = false;

async function ask(method, params) {
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const { result, error } = await (await fetch(url, { method: 'POST', headers, body })).json();
  if (error) throw new Error(error.message);
  return result;
}

const nextNonce = async () => Number(await ask('eth_getTransactionCount', [from, 'pending']));

async function sendAllTheTime() {
  let known = -1;
  while (!isOver) {
    // At most as many as the service sends: more would starve it on a slow machine.
    if ((await nextNonce()) > known) {
      hashes.push(await ask('eth_sendTransaction', [{ from, to: from, value: '0x1', gas: '0x5208' }]));
      known = await nextNonce();
      if (hashes.length === 1) console.log('sending');
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  console.log(`sent ${JSON.stringify(hashes)}`);
  process.exit(0);
}

process.on('SIGTERM', () => (isOver = true));
void sendAllTheTime();
