// Loaded with `node --require`: connections to the hosts of REDIRECT_HOSTS ({"host": port}) go to that port
// of this machine. Host names, certificates and all data stay the same.
const { Socket } = require('node:net');
const { env } = require('node:process');

const ports = JSON.parse(env.REDIRECT_HOSTS ?? '{}');
const { connect } = Socket.prototype;

function redirected(options) {
  const port = typeof options === 'object' && options !== null ? ports[options.host] : undefined;
  return port === undefined ? options : { ...options, host: '127.0.0.1', port };
}

Socket.prototype.connect = function connectElsewhere(first, ...rest) {
  if (!Array.isArray(first)) return connect.call(this, redirected(first), ...rest);
  // Node.js has already normalised these arguments: the options come first.
  first[0] = redirected(first[0]);
  return connect.call(this, first, ...rest);
};
