import { devNull } from 'node:os';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { loadConfig } from '../../service/config/config';
import { ConfigurationError } from '../../service/base/errors';
import { createLogger, type Logger } from '../../service/base/logger';
import { unmaskedSettings } from '../../service/config/secrets';
import { percentDecoded, printableUrl, secretMasker, secretPartsOf } from '../../service/base/mask-secrets';

describe('secrets', () => {
  const KEY = `0x${'ab'.repeat(32)}`;

  it('are masked anywhere in a text, with and without 0x, and escaped', () => {
    const mask = secretMasker([KEY, 'line\nbreak-secret']);
    expect(mask(`a ${KEY} b ${KEY.slice(2)} c`)).to.equal('a [secret] b [secret] c');
    expect(mask(JSON.stringify({ pem: 'line\nbreak-secret' }))).to.equal('{"pem":"[secret]"}');
  });

  it('are not masked when they are too short', () => {
    expect(secretMasker(['a', undefined])('banana')).to.equal('banana');
  });

  it('include the key, query, user and password of a provider URL, but not a local address', () => {
    expect(secretPartsOf('https://node.example/v3/0123456789abcdef0123')).to.include('0123456789abcdef0123');
    expect(secretPartsOf('https://me:pass@node.example/?token=t')).to.include.members([
      'me',
      'pass',
      'token=t',
    ]);
    expect(secretPartsOf('https://node.example/short')).to.include('https://node.example/short');
    expect(secretPartsOf('http://127.0.0.1:8545')).to.deep.equal([]);
  });

  it('are masked in upper and lower case, and when escaped repeatedly', () => {
    const mask = secretMasker([KEY, 'p@"\\b.c+d']);
    expect(mask(`${KEY.toUpperCase()} ${KEY.slice(2).toUpperCase()}`)).to.equal('0X[secret] [secret]');
    const once = JSON.stringify({ p: 'p@"\\b.c+d' });
    expect(mask(once)).to.equal('{"p":"[secret]"}');
    expect(mask(inspect({ p: 'p@"\\b.c+d' }))).to.equal("{ p: '[secret]' }");
    for (const text of [
      JSON.stringify({ once }),
      inspect({ once }),
      JSON.stringify(JSON.stringify({ once })),
    ])
      expect(mask(text)).to.contain('[secret]').and.not.to.contain('c+d');
  });

  it('include secret parts of a URL, also decoded and as a Basic header, but not its plain words', () => {
    const parts = secretPartsOf(
      'https://me:p%40ss@node.example/v3/abc123def?apikey=from-the-mail&chain=polygon',
    );
    const basic = Buffer.from('me:p@ss').toString('base64');
    expect(parts).to.include.members(['p@ss', 'p%40ss', basic, 'abc123def', 'from-the-mail']);
    expect(parts).not.to.include.members(['polygon', 'v3']);
  });

  it('include the keys in a malformed URL', () => {
    expect(secretPartsOf('https//n.example:x/v3/0123456789abcdef')).to.include('0123456789abcdef');
  });

  /** The lines of a log that masks the key. */
  const logged = (log: (logger: Logger) => void): string => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    log(createLogger({ level: 'info', mask: secretMasker([KEY]), destination }));
    return lines.join('');
  };

  it('are masked before a long message is cut', () => {
    const error = new Error(`${'x'.repeat(3_980)}${KEY}${'y'.repeat(100)}`);
    expect(logged((logger) => logger.error({ error }, 'failed')))
      .to.contain('[secret]')
      .and.not.to.contain(KEY.slice(0, 12));
  });

  it('cause a warning when they are too short to be masked', () => {
    const settings = {
      PROVIDER_API_KEY: 'abc',
      TUNNEL_AUTHTOKEN: 'abcdef',
      RPC_URL: 'https://u:p%40@node.example/',
    };
    expect(unmaskedSettings(settings)).to.deep.equal(['RPC_URL', 'PROVIDER_API_KEY']);
    const { warnings, secrets } = loadConfig({ ENV_FILE: devNull, NET: '31337', PROVIDER_API_KEY: 'abc' });
    expect(warnings).to.include(
      'PROVIDER_API_KEY: a secret of less than 6 characters is not masked in outputs. Use a longer one.',
    );
    expect(secretMasker(secrets)('abc')).to.equal('abc');
  });

  it('are left out of a printable URL', () => {
    expect(printableUrl('wss://me:pass@node.example:8546/v3/key?x=1')).to.equal('wss://node.example:8546/…');
    expect(printableUrl('http://127.0.0.1:8545')).to.equal('http://127.0.0.1:8545');
  });

  it('are masked in every log line, including causes and stacks', () => {
    const cause = new Error(`connect failed: https://node.example/${KEY}`);
    const error = new Error(`could not sign with ${KEY}`, { cause });
    expect(logged((logger) => logger.error({ error, url: KEY }, `key ${KEY}`)))
      .to.contain('could not sign with [secret]')
      .and.contain('connect failed')
      .and.not.contain(KEY.slice(2));
  });

  it('are masked in the remedies of log lines', () => {
    const remedy = `Set another than ${KEY}.`;
    const error = new ConfigurationError('CONFIGURATION_INVALID', 'no', { remedy });
    const line = JSON.parse(logged((logger) => logger.warn({ error }, remedy))) as {
      msg: string;
      error: object;
    };
    expect(line.msg).to.equal('Set another than [secret].');
    expect(line.error).to.include({ remedy: 'Set another than [secret].' });
  });

  it('are percent-decoded; a percent sign that encodes nothing stays', () => {
    expect(percentDecoded('a%20b')).to.equal('a b');
    expect(percentDecoded('100%')).to.equal('100%');
  });
});
