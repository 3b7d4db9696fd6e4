import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { knownSecrets, loadConfig } from '../../service/config/config';
import { SETTINGS } from '../../service/config/settings';
import { ConfigurationError } from '../../service/base/errors';
import { readDocument, tables } from '../helpers/pages/markdown';
import { temporaryFolder } from '../helpers/temporary-folder';

const KEY_PAIR = {
  id: 'did:web:example.com#keys-1',
  type: 'Multikey',
  controller: 'did:web:example.com',
  publicKeyMultibase: 'zDnaekGZTbQBerwcehBSXLqAg6s55hVEBms1zFy89VHXtJSa9',
  secretKeyMultibase: 'z42tqZ5smVag3DtDhjY9YfVwTMyVHW6SCHJi2ZMrD23DGYS3',
};

describe('configuration', () => {
  const folder = temporaryFolder();
  const envFile = join(folder.path, 'tenant.env');
  const base = { ENV_FILE: envFile, NET: '31337', SERVICE_CONFIG: join(folder.path, 'none.json') };
  const load = (settings: Record<string, string>) => loadConfig({ ...base, ...settings });
  const problemOf = (settings: Record<string, string>): string => {
    try {
      load(settings);
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigurationError);
      return (error as Error).message;
    }
    throw new Error('it was accepted');
  };

  beforeEach(() => writeFileSync(envFile, ''));

  it('is read from ENV_FILE, which the real environment overrides', () => {
    writeFileSync(envFile, "PORT=1234\nHOST='0.0.0.0' # a comment\n");
    expect(load({})).to.include({ port: 1234, host: '0.0.0.0' });
    expect(load({ PORT: '4321' })).to.include({ port: 4321, host: '0.0.0.0' });
  });

  it('has the documented defaults', () => {
    const config = loadConfig({
      ENV_FILE: envFile,
      PROVIDER_API_KEY: 'k',
      SERVICE_CONFIG: base.SERVICE_CONFIG,
    });
    expect(config).to.include({ port: 3000, host: '127.0.0.1', development: false });
    expect(config.network).to.include({ chainId: 80002, chainKey: 'polygon-amoy', currency: 'POL' });
    expect(config.rpcUrls).to.deep.equal(['https://polygon-amoy.infura.io/v3/k']);
  });

  it('accepts a BILL_OF_LADING_CONTEXT_URL whose content is known, and http on this machine only', () => {
    for (const url of [
      'https://cdn.example/bol/bill-of-lading-v1.json',
      'https://trustvc.io/context/bill-of-lading.json',
      'http://localhost:3000/contexts/bill-of-lading-v1.json',
      'http://[::1]:3000/bill-of-lading-v1.json',
    ]) {
      const { billOfLadingContextUrl } = load({ BILL_OF_LADING_CONTEXT_URL: url, DOMAIN: 'example.com' });
      expect(billOfLadingContextUrl).to.equal(url);
    }
    for (const [url, problem] of [
      ['http://cdn.example/bill-of-lading-v1.json', /is not https.*localhost/],
      ['ftp://cdn.example/bill-of-lading-v1.json', /is not a URL/],
      ['cdn.example/bill-of-lading-v1.json', /is not a URL/],
      ['https://cdn.example/bill-of-lading-v1.schema.json', /content is not known/],
      ['https://cdn.example/bill-of-lading-v2.json', /content is not known.*bill-of-lading-v1\.json/],
      ['https://cdn.example/bill-of-lading.json', /content is not known.*https:\/\/trustvc\.io/],
      ['https://cdn.example/bill-of-lading-v1.json/', /content is not known/],
      ['https://cdn.example/bill-of-lading-v1.json?at=2', /content is not known/],
      ['https://cdn.example/bill-of-lading-v1.json#terms', /content is not known/],
      ['https://user:password@cdn.example/bill-of-lading-v1.json', /content is not known/],
    ] as const)
      expect(problemOf({ BILL_OF_LADING_CONTEXT_URL: url, DOMAIN: 'example.com' }), url)
        .to.match(/^BILL_OF_LADING_CONTEXT_URL /)
        .and.match(problem)
        .and.not.contain('password');
  });

  it('has the settings that docs/settings.md lists', () => {
    const [rows = []] = tables(readDocument('docs/settings.md').section('Settings'));
    const ofReceiver = /^RECEIVER_|^WEBHOOK_PUBLIC_KEY_FILE$/;
    expect(rows.flatMap(([names = '']) => names.split(', '))).to.have.members(
      Object.keys(SETTINGS).filter((name) => !ofReceiver.test(name)),
    );
  });

  it('names a missing provider key, which RPC_URL makes unnecessary', () => {
    expect(problemOf({ NET: '80002' })).to.match(/PROVIDER_API_KEY is needed to reach amoy/);
    expect(problemOf({ NET: 'stability' })).to.match(/NETWORK_A_API_KEY is needed/);
    expect(load({ NET: '80002', RPC_URL: 'wss://node.example/key' }).rpcUrls[0]).to.equal(
      'wss://node.example/key',
    );
  });

  it('accepts several nodes in RPC_URL, and hides the secrets of each', () => {
    const [first, second] = [
      'https://node.example/v3/0123456789abcdef',
      'wss://other.example/fedcba9876543210',
    ];
    for (const RPC_URL of [`${first} ${second}`, `${first},${second}`, `${first},\n  ${second}`]) {
      const { rpcUrls, secrets } = load({ RPC_URL });
      expect(rpcUrls).to.deep.equal([first, second]);
      expect(secrets).to.include.members(['0123456789abcdef', 'fedcba9876543210']);
    }
    expect(problemOf({ RPC_URL: `${first} ftp://other.example` })).to.match(
      /RPC_URL is a list, and number 2 in it is not a URL\. It starts with http:/,
    );
    expect(problemOf({ RPC_URL: `${first} ${first}` })).to.match(/RPC_URL has the same URL twice/);
  });

  it('accepts a later key in DID_KEY_PAIRS, and only one that is named by a number', () => {
    const escaped = JSON.stringify(KEY_PAIR).replaceAll('"', '\\"');
    expect(load({ DID_KEY_PAIRS: escaped }).issuerKey).to.deep.include({ id: KEY_PAIR.id });
    const withFragment = (fragment: string): string =>
      JSON.stringify({ ...KEY_PAIR, id: `${KEY_PAIR.controller}#${fragment}` });
    for (const fragment of ['keys-2', 'keys-10'])
      expect(load({ DID_KEY_PAIRS: withFragment(fragment) }).issuerKey)
        .to.have.property('id')
        .match(new RegExp(`#${fragment}$`));
    for (const fragment of ['keys-0', 'keys-01', 'keys-', 'keys-1#keys-2', 'keys-x', 'key-1', 'keys-1e3'])
      expect(problemOf({ DID_KEY_PAIRS: withFragment(fragment) }), fragment).to.match(
        /DID_KEY_PAIRS has a wrong field: id must be the controller followed by #keys- and a number/,
      );
  });

  it('refuses a broken DID_KEY_PAIRS without printing its value', () => {
    const broken = JSON.stringify(KEY_PAIR).slice(0, -2);
    expect(problemOf({ DID_KEY_PAIRS: broken }))
      .to.match(/DID_KEY_PAIRS is not valid JSON/)
      .and.not.contain('z42');
    const wrong = JSON.stringify({ ...KEY_PAIR, secretKeyMultibase: 'zQ3shSecret' });
    expect(problemOf({ DID_KEY_PAIRS: wrong }))
      .to.match(/secretKeyMultibase/)
      .and.not.contain('zQ3shSecret');
  });

  it('refuses a key pair of another domain', () => {
    const problem = problemOf({ DID_KEY_PAIRS: JSON.stringify(KEY_PAIR), DOMAIN: 'example.org' });
    expect(problem).to.match(/did:web:example\.com.*did:web:example\.org/);
  });

  it('requires a signing key with a webhook, and refuses a malformed one without printing it', () => {
    expect(problemOf({ WEBHOOK_URL: 'http://127.0.0.1:1/' })).to.match(/SIGNING_PRIVATE_KEY is needed/);
    expect(problemOf({ SIGNING_PRIVATE_KEY: 'c2hvcnQ=' }))
      .to.match(/SIGNING_PRIVATE_KEY is not/)
      .and.not.contain('c2hv');
  });

  describe('of a change of the signing key', () => {
    const SIGNING_PRIVATE_KEY = Buffer.alloc(32, 7).toString('base64');
    const SIGNING_PRIVATE_KEY_NEXT = Buffer.alloc(32, 8).toString('base64');
    const SIGNING_KEY_SWITCH_AT = '2027-01-31T12:00:00Z';
    const change = { SIGNING_PRIVATE_KEY, SIGNING_PRIVATE_KEY_NEXT, SIGNING_KEY_SWITCH_AT };

    it('is two keys and the time of the change; both keys are secrets', () => {
      const { signingKeys, secrets } = load(change);
      expect(signingKeys?.next?.from).to.equal(Date.UTC(2027, 0, 31, 12));
      expect(signingKeys?.next?.key.id).not.to.equal(signingKeys?.key.id);
      expect(secrets).to.include.members([SIGNING_PRIVATE_KEY, SIGNING_PRIVATE_KEY_NEXT]);
      expect(load({ SIGNING_PRIVATE_KEY }).signingKeys?.next).to.equal(undefined);
      expect(load({}).signingKeys).to.equal(undefined);
    });

    const noTime = /^SIGNING_KEY_SWITCH_AT ".*" is not a time in UTC\. Write .*2027-01-31T12:00:00Z/;
    for (const [changes, problem] of [
      [{ SIGNING_KEY_SWITCH_AT: '' }, /^SIGNING_KEY_SWITCH_AT is needed with.*such as/],
      [{ SIGNING_PRIVATE_KEY_NEXT: '' }, /^SIGNING_PRIVATE_KEY_NEXT is needed with/],
      [{ SIGNING_PRIVATE_KEY: '' }, /^SIGNING_PRIVATE_KEY is needed with/],
      [
        { SIGNING_PRIVATE_KEY_NEXT: SIGNING_PRIVATE_KEY },
        /^SIGNING_PRIVATE_KEY_NEXT is the same key.*If the change is over, unset/,
      ],
      [{ SIGNING_PRIVATE_KEY_NEXT: 'c2hvcnQ=' }, /^SIGNING_PRIVATE_KEY_NEXT is not(?!.*c2hv)/],
      [{ SIGNING_KEY_SWITCH_AT: '2027-01-31' }, noTime],
      [{ SIGNING_KEY_SWITCH_AT: '2027-01-31T12:00:00' }, noTime],
      [{ SIGNING_KEY_SWITCH_AT: '2027-01-31T12:00:00+01:00' }, noTime],
      [{ SIGNING_KEY_SWITCH_AT: '2027-01-31T12:00:00.5Z' }, noTime],
      [{ SIGNING_KEY_SWITCH_AT: '2027-02-30T12:00:00Z' }, noTime],
    ] as const)
      it(`is refused with ${JSON.stringify(changes)}: ${String(problem)}`, () => {
        expect(problemOf({ ...change, ...changes })).to.match(problem);
      });
  });

  it("has the key of the subscriptions' secrets as 32 bytes, and lets no sink be private by default", () => {
    const key = Buffer.alloc(32, 7);
    const { secretsKey, allowPrivateSinks, adminApiKey } = load({ SECRETS_KEY: key.toString('base64') });
    expect(secretsKey?.equals(key)).to.equal(true);
    expect({ allowPrivateSinks, adminApiKey }).to.deep.equal({
      allowPrivateSinks: false,
      adminApiKey: undefined,
    });
    expect(load({ ALLOW_PRIVATE_SINKS: 'true' }).allowPrivateSinks).to.equal(true);
    expect(load({ ALLOW_PRIVATE_SINKS: 'False' }).allowPrivateSinks).to.equal(false);
  });

  it('refuses a SECRETS_KEY of another length or form without printing it, and says how to make one', () => {
    const wrong = [31, 33].map((length) => Buffer.alloc(length, 7).toString('base64'));
    for (const value of [...wrong, '07'.repeat(32), 'correct horse battery staple'])
      expect(problemOf({ SECRETS_KEY: value }))
        .to.match(/^SECRETS_KEY is not the base64 of 32 bytes\. .*openssl rand -base64 32/)
        .and.not.contain(value.slice(0, 8));
  });

  for (const [name, value] of [
    ['PORT', '65536'],
    ['PORT', '3000x'],
    ['CONFIRMATIONS', '-1'],
    ['START_BLOCK', '1.5'],
    ['START_BLOCK', '9007199254740992'],
    ['DOCUMENT_RETENTION_DAYS', '0'],
    ['EVENT_RETENTION_DAYS', '36501'],
    ['LARGE_BODIES_AT_ONCE', '0'],
    ['SUBSCRIPTION_FAILING_AFTER_MINUTES', '0'],
    ['SUBSCRIPTION_FAILING_AFTER_MINUTES', '525601'],
    ['SIGNING_THREADS', '1.5'],
    ['DOMAIN', 'https://example.com'],
    ['DOMAIN', 'example.com:99999'],
    ['RPC_URL', 'localhost:8545'],
    ['TOKEN_REGISTRY_ADDRESS', '0x1234'],
    ['WALLET_PRIVATE_KEY', '0x1234'],
    ['LOG_LEVEL', 'loud'],
    ['ALLOW_PRIVATE_SINKS', 'yes'],
  ] as const) {
    it(`refuses ${name}=${value} and names the setting`, () =>
      expect(problemOf({ [name]: value })).to.match(new RegExp(`^${name} `)));
  }

  it('has SUBSCRIPTION_FAILING_AFTER_MINUTES from one minute to one year, and an hour by default', () => {
    const minutesOf = (SUBSCRIPTION_FAILING_AFTER_MINUTES: string): number =>
      load({ SUBSCRIPTION_FAILING_AFTER_MINUTES }).subscriptionFailingAfterMinutes;
    expect(['1', '525600', ''].map(minutesOf)).to.deep.equal([1, 525_600, 60]);
  });

  it('does not print an invalid address or domain, which may be a secret on the wrong line', () => {
    const { privateKey } = Wallet.createRandom();
    expect(problemOf({ TOKEN_REGISTRY_ADDRESS: privateKey })).to.match(
      /^TOKEN_REGISTRY_ADDRESS \(66 characters\)/,
    );
    expect(problemOf({ DOMAIN: 'https://me:pass@h' })).to.match(/^DOMAIN \(17 characters\)/);
  });

  for (const [domain, remedy] of [
    ['Bücher.example', 'Write xn--bcher-kva.example'],
    ['bücher.example:8443', 'Write xn--bcher-kva.example:8443'],
    ['貿易.example', 'Write xn--7hvt47f.example'],
    ['https://bücher.example', 'Leave out https://'],
    ['bücher.example/path', 'Write xn--bcher-kva.example'],
  ] as const)
    it(`refuses DOMAIN=${domain} with the remedy: ${remedy}`, () =>
      expect(problemOf({ DOMAIN: domain })).to.contain(`"${domain}" is not a host or host:port. ${remedy}`));

  it('says what is wrong with a DATABASE_URL, and takes the socket of a server, without its password', () => {
    const encode = 'has a user, a password or a port that no URL can have. In these write # as %23';
    for (const [url, problem] of [
      ['postgres://me:pass#word@host/name', encode],
      ['postgres://me:12#word@host/name', encode],
      ['postgres://me:pass/word@host/name', encode],
      ['postgres://me:12/word@host/name', encode],
      ['postgres://me:pass?word@host/name', encode],
      ['postgres://me:pass,word#1@host/name', encode],
      ['postgres://me:word@host:99999/name', encode],
      ['postgres://me:2024?x@host/name', encode],
      ['postgres://me:word@one:5432,two:5432/name', 'names several hosts. Name one'],
      ['postgresql://one,two/name', 'names several hosts. Name one'],
      ['mysql://me:word@host/name', 'is not a URL. It starts with postgres:// or postgresql://'],
      ['host=localhost password=word', 'is not a URL. It starts with postgres:// or postgresql://'],
    ] as const) {
      const shown = problemOf({ DATABASE_URL: url });
      expect(shown, url).to.contain(`DATABASE_URL ${problem}`).and.not.to.contain('word@');
      expect(knownSecrets({ ...base, DATABASE_URL: url }), url).to.include(url);
    }
    for (const url of [
      'postgres://me:s3#c@host/name',
      'postgres://me:s3#c@/name?host=/run',
      'postgres://me:s3%23c@host/name',
    ])
      expect(knownSecrets({ ...base, DATABASE_URL: url })).to.include(url.includes('%') ? 's3%23c' : 's3#c');
    for (const [url, taken = url] of [
      ['postgres:///name?host=/var/run/postgresql'],
      ['postgres://%2Fvar%2Frun%2Fpostgresql/name'],
      ['postgres://me:pass,%23word@host/name'],
      ['postgres://me:word@host:5432/name?user=me@tenant&sslmode=verify-full'],
      ['postgres://me:word@/name?host=/run', 'postgres://me:word@localhost/name?host=/run'],
    ] as const)
      expect(load({ DATABASE_URL: url }).databaseUrl, url).to.equal(taken);
  });

  it('names an ENV_FILE or a SERVICE_CONFIG in UTF-16, as PowerShell writes it', () => {
    for (const [name, file] of [
      ['ENV_FILE', envFile],
      ['SERVICE_CONFIG', join(folder.path, 'utf16.json')],
    ] as const) {
      writeFileSync(file, Buffer.from('\ufeffPORT=1234\r\n', 'utf16le'));
      const remedy = 'is in UTF-16, or is no text. Save it as UTF-8.';
      expect(problemOf({ [name]: file })).to.equal(`${name} ${file} ${remedy}`);
      writeFileSync(envFile, '');
    }
    writeFileSync(envFile, '\ufeffPORT=1234\r\n');
    expect(load({}).port).to.equal(1234);
  });

  it('warns of a proxy, which is not used', () => {
    expect(load({ https_proxy: 'http://me:word@proxy' }).warnings.join())
      .to.contain('https_proxy: it is not used.')
      .and.not.to.contain('word');
  });

  it('takes a CONSOLE_READ_KEY beside another ADMIN_API_KEY only', () => {
    const CONSOLE_READ_KEY = 'key-to-look-only';
    expect(load({ CONSOLE_READ_KEY, ADMIN_API_KEY: 'key-of-the-operator' }).consoleReadKey).to.equal(
      CONSOLE_READ_KEY,
    );
    const problem = problemOf({ CONSOLE_READ_KEY });
    expect(problem).to.match(/^CONSOLE_READ_KEY is set, but there is no console\. Set ADMIN_API_KEY/);
    const same = problemOf({ CONSOLE_READ_KEY, ADMIN_API_KEY: CONSOLE_READ_KEY });
    expect(same).to.match(/^CONSOLE_READ_KEY is the same as ADMIN_API_KEY\./);
    expect(problem + same).not.to.contain(CONSOLE_READ_KEY);
  });

  it('takes WALLET_LOGIN beside DOMAIN and ADMIN_API_KEY only', () => {
    const whole = { WALLET_LOGIN: 'true', DOMAIN: 'carrier.example', ADMIN_API_KEY: 'key-of-the-operator' };
    expect(load(whole).walletLogin).to.equal(true);
    expect(load({ ...whole, WALLET_LOGIN: '' }).walletLogin).to.equal(false);
    for (const missing of ['DOMAIN', 'ADMIN_API_KEY'])
      expect(problemOf({ ...whole, [missing]: '' })).to.match(
        new RegExp(`^WALLET_LOGIN is true, but there is no ${missing}\\. Set it too`),
      );
    expect(load({ WALLET_LOGIN: 'false' }).walletLogin).to.equal(false);
  });

  it('takes keys of at least 16 printable ASCII characters only', () => {
    const ADMIN_API_KEY = 'key-of-the-operator';
    for (const name of ['API_KEY', 'ADMIN_API_KEY', 'CONSOLE_READ_KEY'])
      for (const key of ['x'.repeat(15), 'pässwort-of-the-issuer', 'key-with-a\ttab-in-it']) {
        const problem = problemOf({ ADMIN_API_KEY, [name]: key });
        expect(problem).to.match(
          new RegExp(`^${name} is not a key of at least 16 characters, .* \`node -p `),
        );
        expect(problem).not.to.contain(key);
      }
    expect(load({ API_KEY: 'at least 16 & " too' }).apiKey).to.equal('at least 16 & " too');
  });

  it('takes one key of the wallet: in WALLET_PRIVATE_KEY, or behind WALLET_SIGNER_URL', () => {
    const { privateKey, address } = Wallet.createRandom();
    const signer = {
      WALLET_SIGNER_URL: 'https://signer.example:9000',
      WALLET_ADDRESS: address.toLowerCase(),
    };
    expect(load({ WALLET_PRIVATE_KEY: privateKey }).walletKey).to.deep.equal({ privateKey });
    expect(load(signer).walletKey).to.deep.equal({
      url: signer.WALLET_SIGNER_URL,
      address,
      token: undefined,
      certificate: undefined,
    });
    const whole = {
      ...signer,
      WALLET_SIGNER_TOKEN: 'token-of-the-signer',
      WALLET_SIGNER_CERTIFICATE: '/a/c.pem',
      WALLET_SIGNER_CERTIFICATE_KEY: '/a/k.pem',
    };
    expect(load(whole).walletKey).to.deep.include({
      token: 'token-of-the-signer',
      certificate: { path: '/a/c.pem', keyPath: '/a/k.pem' },
    });
    const { WALLET_ADDRESS, WALLET_SIGNER_TOKEN, WALLET_SIGNER_CERTIFICATE } = whole;
    for (const [settings, problem] of [
      [
        { ...signer, WALLET_PRIVATE_KEY: privateKey },
        /^WALLET_PRIVATE_KEY and WALLET_SIGNER_URL are both set\./,
      ],
      [{ ...signer, WALLET_ADDRESS: '' }, /^WALLET_ADDRESS is needed with/],
      [
        { ...whole, WALLET_SIGNER_CERTIFICATE_KEY: '' },
        /^WALLET_SIGNER_CERTIFICATE_KEY is needed with WALLET_SIGNER_/,
      ],
      [
        { WALLET_ADDRESS },
        /^WALLET_ADDRESS is set, but neither WALLET_SIGNER_URL nor WALLET_PKCS11_KEY is\./,
      ],
      [{ WALLET_SIGNER_TOKEN }, /^WALLET_SIGNER_TOKEN is set, but WALLET_SIGNER_URL is not\./],
      [{ WALLET_SIGNER_CERTIFICATE }, /^WALLET_SIGNER_CERTIFICATE is set, but WALLET_SIGNER_URL is not\./],
      [
        { ...whole, WALLET_SIGNER_URL: 'https://me:pass-of-the-signer@signer.example' },
        /^WALLET_SIGNER_TOKEN and the user of WALLET_SIGNER_URL are both/,
      ],
    ] as const)
      expect(problemOf(settings)).to.match(problem).and.not.to.contain(privateKey.slice(2));
  });

  it('collects the secrets that must not be printed', () => {
    const { privateKey } = Wallet.createRandom();
    expect(
      load({
        WALLET_SIGNER_URL: 'https://signer.example/9e107d9d372bb6826bd81d35',
        WALLET_ADDRESS: Wallet.createRandom().address,
        WALLET_SIGNER_TOKEN: 'token-of-the-signer',
      }).secrets,
    ).to.include.members(['9e107d9d372bb6826bd81d35', 'token-of-the-signer']);
    const secret = '0123456789abcdef0123';
    const SECRETS_KEY = Buffer.alloc(32, 7).toString('base64');
    const config = load({
      WALLET_PRIVATE_KEY: privateKey,
      API_KEY: 'key-of-the-issuer',
      ADMIN_API_KEY: 'key-of-the-operator',
      CONSOLE_READ_KEY: 'key-of-the-reader',
      SECRETS_KEY,
      RPC_URL: `https://n.example/v3/${secret}`,
    });
    expect(config.secrets).to.include.members([
      privateKey,
      'key-of-the-issuer',
      'key-of-the-operator',
      'key-of-the-reader',
      SECRETS_KEY,
      secret,
    ]);
  });
});
