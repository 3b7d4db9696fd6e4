/* global process, setTimeout */
// Loaded with `node --require`: `localhost` is a distant host. To connect to it takes 0.7 s, which is longer
// than Node.js waits by default for one of several addresses. It has an IPv6 address too, to which there is no
// route. Nothing else is replaced: Node.js itself tries the addresses.
const dns = require('node:dns');
const net = require('node:net');
const { constants } = require('node:os');

const HANDSHAKE_MS = 700;
const IPV4 = '192.0.2.1';
const IPV6 = '2001:db8::1';
const { lookup } = dns;
const real = { setTimeout };

dns.lookup = function lookupDistant(name, options, callback) {
  if (name !== 'localhost') return lookup.call(this, name, options, callback);
  const { all, family } = typeof options === 'object' ? options : {};
  const found = [
    { address: IPV4, family: 4 },
    { address: IPV6, family: 6 },
  ].filter((one) => !family || one.family === family);
  const answer = callback ?? options;
  process.nextTick(() => (all ? answer(null, found) : answer(null, found[0].address, found[0].family)));
};

const probe = new net.Socket().on('error', () => undefined);
probe.connect({ host: '127.0.0.1', port: 1 });
const handle = Object.getPrototypeOf(probe._handle);
probe.destroy();
const { connect, connect6 } = handle;

handle.connect = function connectSlowly(request, address, port) {
  if (address !== IPV4) return connect.call(this, request, address, port);
  real.setTimeout(() => {
    // Node.js has given the attempt up.
    if (typeof request.oncomplete !== 'function') return;
    const failure = connect.call(this, request, '127.0.0.1', port);
    if (failure) request.oncomplete(failure, this, request, false, false);
  }, HANDSHAKE_MS);
  return 0;
};

handle.connect6 = function connectNowhere(request, address, port) {
  return address === IPV6 ? -constants.errno.ENETUNREACH : connect6.call(this, request, address, port);
};
