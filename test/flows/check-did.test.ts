import type { RequestListener } from 'node:http';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from '@digitalbazaar/ecdsa-multikey';
import { expect } from 'chai';
import { checkDid } from '../../cli/keys/check-did';
import { printable } from '../../service/base/printable';
import { didDocumentOf, type DidDocument } from '../../cli/keys/did-key';
import { freePort } from '../../devnet/place';
import { type DidKeyPair } from '../../service/base/did-key-pair';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';
import { serve, type TestServer } from '../helpers/http-server';
import { startService } from '../helpers/processes/running-service';

describe('npx tdoc did --check', () => {
  const folder = temporaryFolder();
  let host: TestServer;
  let answer: RequestListener;
  let keyPair: DidKeyPair;
  let document: DidDocument;
  let didFile: string;

  /** A key pair for the host's DID, and did.json as `npx tdoc did` writes it. */
  before(async () => {
    host = await serve((request, response) => answer(request, response));
    const did = `did:web:127.0.0.1%3A${host.port}`;
    const pair = await generate({ id: `${did}#keys-1`, controller: did, curve: 'P-256' });
    keyPair = (await pair.export({ publicKey: true, secretKey: true })) as DidKeyPair;
    document = didDocumentOf(keyPair);
    didFile = join(folder.path, 'lying-did.json');
  });
  beforeEach(() => {
    writeFileSync(didFile, JSON.stringify(document));
    publish(document);
  });
  function publish(body: unknown, headers: Record<string, string> = {}, status = 200): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    answer = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/did+json', ...headers }).end(text);
    };
  }

  /** Checks the host; returns whether all documents are equal, and the printed lines. */
  async function check(
    more: Record<string, string> = {},
  ): Promise<{ areEqual?: boolean | undefined; text: string }> {
    const settings = {
      ENV_FILE: join(folder.path, 'none.env'),
      DOMAIN: `127.0.0.1:${host.port}`,
      DID_DOCUMENT_PATH: didFile,
      DID_KEY_PAIRS: JSON.stringify(keyPair),
      ...more,
    };
    const { isYes: areEqual, lines, json } = await checkDid(settings);
    const printed = JSON.stringify(json);
    const text = lines.map((line) => printable(line)).join('\n');
    expect(text + printed).not.to.contain(keyPair.secretKeyMultibase);
    const { parts, ...answer } = JSON.parse(printed) as { areEqual: boolean | null; parts: object[] };
    expect(answer).to.include({ areEqual: areEqual ?? null });
    expect(parts.map((part) => Object.keys(part).sort())).to.deep.equal(
      parts.map(() => ['differences', 'name', 'unknown']),
    );
    return { areEqual, text };
  }

  it('exits with 0 if the service serves did.json, 1 if another document, 2 if it is down', async () => {
    const settings = {
      DOMAIN: `localhost:${await freePort(0)}`,
      ENV_FILE: join(folder.path, 'service.env'),
      SERVICE_CONFIG: join(folder.path, 'service.config.json'),
      DID_DOCUMENT_PATH: join(folder.path, 'did.json'),
      DATA_DIR: join(folder.path, 'data'),
      NET: '31337',
      RPC_URL: 'http://127.0.0.1:9',
    };
    const ask = (...args: string[]) => askTdocInProcess(['did', ...args], settings);
    await ask();
    const text = readFileSync(settings.DID_DOCUMENT_PATH, 'utf8');
    const service = await startService({ ...settings, PORT: settings.DOMAIN.split(':')[1] ?? '' });
    const equal = await ask('--check');
    expect(equal.stdout).to.match(
      /ok +DID_KEY_PAIRS\nok +.*did\.json\nok +http:\/\/localhost:\d+\/.*\nall equal\n$/,
    );
    expect(equal.code).to.equal(0);
    writeFileSync(settings.DID_DOCUMENT_PATH, text.replace('"assertionMethod"', '"assertion"'));
    const differs = await ask('--check');
    expect(differs.stdout).to.match(/differs +http.*: \/assertionMethod is missing/);
    expect(differs.code).to.equal(1);
    await service.stop();
    writeFileSync(settings.DID_DOCUMENT_PATH, text);
    const down = await ask('--check');
    expect(down.stdout).to.match(/unknown +https:\/\/localhost:\d+\/.*: cannot be reached/);
    expect(down.code).to.equal(2);
  });

  it('reports a host that answers 404, no JSON, another type or a redirect; 503 is unknown', async () => {
    for (const [body, headers, status, message, expected] of [
      ['', {}, 404, /answers 404/, false],
      ['<html>', {}, 200, /is not JSON/, false],
      [document, { 'content-type': 'text/html' }, 200, /content type text\/html/, false],
      ['', { location: 'http://issuer.invalid/did.json' }, 302, /redirects to http:/, false],
      ['', {}, 503, /unknown .*answers 503[^]*could be compared$/, undefined],
    ] as const) {
      publish(body, headers, status);
      const { areEqual, text } = await check();
      expect(areEqual, text).to.equal(expected);
      expect(text).to.match(message);
    }
    answer = (request, response) => {
      if (request.url === '/elsewhere')
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
      else response.writeHead(301, { location: '/elsewhere' }).end();
    };
    expect((await check()).text).to.match(/redirects to: not every verifier follows/);
  });

  it('names each item that differs in did.json or at the host', async () => {
    const [method] = document.verificationMethod;
    const other = { ...method, publicKeyMultibase: 'zDnaOther' };
    const without: Partial<DidDocument> = { ...document };
    delete without.capabilityDelegation;
    for (const [changed, message] of [
      [{ ...document, id: 'did:web:another' }, /\/id is "did:web:another"; it should be "did:web:127/],
      [
        { ...document, verificationMethod: [other] },
        /\/verificationMethod\/0\/publicKeyMultibase is "zDnaOther"; it should be "zDn/,
      ],
      [{ ...document, verificationMethod: [method, other] }, /\/verificationMethod\/1 should not be there/],
      [{ ...document, '@context': [...document['@context']].reverse() }, /\/@context\/0 is "https:\/\/w3id/],
      [without, /\/capabilityDelegation is missing/],
      [{ ...document, authentication: [] }, /\/authentication\/0 is missing/],
      [{ ...document, 'x\u202e': 1 }, /\/x\\u202e should not be there/],
      [[], /\(the whole\) is \[\]/],
    ] as const) {
      const places: [change: (to: unknown) => void, equal: RegExp][] = [
        [publish, /ok +\/.*lying-did\.json/],
        [(to) => writeFileSync(didFile, JSON.stringify(to)), /ok +http:/],
      ];
      for (const [change, equal] of places) {
        change(changed);
        const { areEqual, text } = await check();
        expect(areEqual, text).to.equal(false);
        expect(text).to.match(message).and.match(equal);
        change(document);
      }
    }
    expect(await check()).to.include({ areEqual: true });
  });

  it('reports a domain that lacks an earlier key, or still has a revoked one', async () => {
    const { publicKeyMultibase } = keyPair;
    const did = keyPair.controller;
    const earlier = { id: `${did}#keys-1`, type: 'Multikey' as const, controller: did, publicKeyMultibase };
    const present = { ...keyPair, id: `${did}#keys-2` };
    const [both, one] = [didDocumentOf(present, [earlier]), didDocumentOf(present)];
    const DID_KEY_PAIRS = JSON.stringify(present);
    for (const [filed, served, message] of [
      [both, both, /all equal$/],
      [both, one, /differs +http.*\/assertionMethod\/1 is missing; it should be .*#keys-2/],
      [one, both, /differs +http.*\/verificationMethod\/1 should not be there/],
    ] as const) {
      writeFileSync(didFile, JSON.stringify(filed));
      publish(served);
      const { text, areEqual } = await check({ DID_KEY_PAIRS });
      expect(text).to.match(message);
      expect(areEqual).to.equal(filed === served);
    }
    rmSync(didFile);
    publish(both);
    expect((await check({ DID_KEY_PAIRS })).text).to.match(/does not exist.*\nok +http/);
  });

  it('reports a published secret key without printing it', async () => {
    const [method] = document.verificationMethod;
    const { secretKeyMultibase } = keyPair;
    for (const leak of [
      { ...document, verificationMethod: [{ ...method, secretKeyMultibase }] },
      { ...document, verificationMethod: [{ ...method, publicKeyMultibase: secretKeyMultibase }] },
      { ...document, note: `key: ${secretKeyMultibase}` },
      { ...document, verificationMethod: [{ ...method, publicKeyJwk: { kty: 'EC', d: 'very-secret' } }] },
    ]) {
      publish(leak);
      const { areEqual, text } = await check();
      expect(areEqual).to.equal(false);
      expect(text)
        .to.match(/\/(verificationMethod\/0\/\w+|note)(\/d)? PUBLISHES A SECRET KEY/)
        .and.not.contain('very-secret');
    }
  });

  it('names the problem with DID_KEY_PAIRS', async () => {
    const stranger = await generate({ id: keyPair.id, controller: keyPair.controller, curve: 'P-256' });
    const { publicKeyMultibase } = (await stranger.export({ publicKey: true })) as DidKeyPair;
    const damaged = `${keyPair.secretKeyMultibase.slice(0, -4)}0OIl`;
    for (const [value, message] of [
      ['', /DID_KEY_PAIRS: is not set/],
      ['{', /DID_KEY_PAIRS: is not valid JSON/],
      [
        JSON.stringify(keyPair).replace(/#.*/, ''),
        /is cut at its first #.* in single quotes in the env file/,
      ],
      [
        JSON.stringify({ ...keyPair, publicKeyMultibase }),
        /public key that does not belong to its secret key/,
      ],
      [
        JSON.stringify({ ...keyPair, secretKeyMultibase: damaged }),
        /DID_KEY_PAIRS: has a damaged secret key/,
      ],
      [
        JSON.stringify(keyPair).replaceAll('127.0.0.1', 'issuer.example'),
        /is the key of did:web:issuer\.example/,
      ],
    ] as const) {
      const { areEqual, text } = await check({ DID_KEY_PAIRS: value });
      expect(areEqual).to.equal(false);
      expect(text)
        .to.match(message)
        .and.match(/ok +\/.*lying-did\.json\nok +http:/);
    }
  });

  it('reports a missing or broken did.json, and compares the host with it without a key', async () => {
    publish({ ...document, id: 'did:web:another' });
    expect((await check({ DID_KEY_PAIRS: '' })).text).to.match(/differs +http.*\/id is "did:web:another"/);
    writeFileSync(didFile, '{');
    expect((await check()).text).to.match(/differs .*lying-did\.json: is not JSON/);
    rmSync(didFile);
    expect((await check()).text).to.match(/differs .*lying-did\.json: does not exist/);
    expect((await check({ DID_KEY_PAIRS: '' })).text).to.match(/neither a key nor a document/);
  });

  it('refuses to run without DOMAIN or with --force, and creates no file', async () => {
    const error = await check({ DOMAIN: '' }).catch((thrown: unknown) => thrown);
    expect(error).to.include({ code: 'NOT_CONFIGURED' });
    const both = await askTdocInProcess(['did', '--check', '--force'], {});
    expect(both).to.include({ code: 2 });
    expect(both.stderr).to.contain("option '--check' cannot be used with option '--force'");
    expect(existsSync(join(folder.path, 'none.env'))).to.equal(false);
  });
});
