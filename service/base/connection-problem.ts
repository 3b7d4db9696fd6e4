import { codeOf, messageOf } from './errors';

const TRUST = 'let it send its whole chain, or name its authority in NODE_EXTRA_CA_CERTS';
/** Failures of connections, by the code or the text of Node.js, OpenSSL, undici or pg; and their meaning. */
const MEANINGS: readonly [RegExp, string][] = [
  [/WRONG_VERSION|PACKET_LENGTH_TOO_LONG/, 'it speaks http there, not https: correct the scheme or port'],
  [/NO_APPLICATION_PROTOCOL/, 'it speaks no HTTP/1.1 there: enable that beside HTTP/2'],
  [/CERTIFICATE_REQUIRED|BAD_CERTIFICATE/, 'it wants a client certificate, and gets none: let it do without'],
  [/HANDSHAKE_FAILURE/, 'it refuses TLS: it wants a client certificate, or other ciphers'],
  [/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/, 'it has no TLS 1.2 or 1.3: enable one'],
  [/SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/, `nobody trusted signed its certificate: ${TRUST}`],
  [/CERT_HAS_EXPIRED/, 'its certificate has expired: renew it'],
  [/ALTNAME_INVALID/, 'its certificate is of another name: use a name that is in the certificate'],
  [/other side closed/, 'it closed the connection: it may speak https there, or want a client certificate'],
  [/no encryption|SSL off/, 'it wants TLS: add sslmode=verify-full to the URL'],
  [/does not support SSL/, 'it has no TLS: enable ssl there, or write sslmode=disable in the URL'],
];

/** Why a connection failed: its meaning, if that is known, and the words of the library. */
export function connectionProblem(cause: unknown): string {
  const words = messageOf(cause).trim() || `${codeOf(cause)}`;
  const [, meaning] = MEANINGS.find(([pattern]) => pattern.test(`${codeOf(cause)} ${words}`)) ?? [];
  return meaning === undefined ? words : `${meaning} (${words})`;
}
