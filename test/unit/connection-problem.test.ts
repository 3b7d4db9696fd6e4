import { expect } from 'chai';
import { connectionProblem } from '../../service/base/errors';

describe('why a connection failed', () => {
  for (const [code, words, meaning] of [
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'wrong version number', 'it speaks http there, not https'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'packet length too long', 'it speaks http there, not https'],
    ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', 'alert 120', 'it speaks no HTTP/1.1 there'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'alert 116', 'it wants a client certificate'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'alert 42', 'it wants a client certificate'],
    ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', 'alert 40', 'it refuses TLS'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'alert 70', 'it has no TLS 1.2 or 1.3'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate', 'nobody trusted signed its certificate'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate', 'nobody trusted signed its certificate'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify', 'nobody trusted signed its certificate'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'unable to get', 'nobody trusted signed its certificate'],
    ['CERT_HAS_EXPIRED', 'certificate has expired', 'its certificate has expired: renew it'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'Hostname/IP does not match', 'its certificate is of another name'],
    ['UND_ERR_SOCKET', 'other side closed', 'it closed the connection: it may'],
    ['28000', 'no pg_hba.conf entry for host "::1", no encryption', 'it wants TLS: add sslmode=verify-full'],
    ['28000', 'no pg_hba.conf entry for host "::1", SSL off', 'it wants TLS: add sslmode=verify-full'],
    [undefined, 'The server does not support SSL connections', 'it has no TLS'],
  ] as const)
    it(`has a meaning for ${code ?? words}, beside the words of the library`, () =>
      expect(connectionProblem(Object.assign(new Error(`${words}\n`), { code })))
        .to.contain(meaning)
        .and.contain(`(${words})`));

  it('has the words of the library alone where no meaning is known', () => {
    const both = [
      new Error('connect ECONNREFUSED ::1:5432'),
      new Error('connect ECONNREFUSED 127.0.0.1:5432'),
    ];
    expect(connectionProblem(new AggregateError(both))).to.equal(
      both.map(({ message }) => message).join('; '),
    );
    expect(connectionProblem('x')).to.equal('x');
  });
});
