import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { printableJson } from '../../cli/terminal/printable';
import { UNWANTED } from '../../service/base/printable';
import { LONGEST_MESSAGE } from '../../service/base/errors';
import type { JsonObject } from '../../service/issuance/credential';
import { createTestIssuer, TEST_REGISTRY } from '../helpers/credentials/test-issuer';
import { newState, openState } from '../helpers/database/engines';
import { serve } from '../helpers/http-server';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { temporaryFolder } from '../helpers/temporary-folder';

/** Clears a screen, sets the title of a window, rings, reverses what follows, and begins a line. */
const EVIL = 'a\u001b[2J\u001b]0;x\u0007\u009b2J\u202e\u2066\r\nVALID\u2028\u200b';
const LONG = `${EVIL}${'y'.repeat(5_000)}`;
/** An object with a hostile name twice. */
const TWICE = `{${JSON.stringify(EVIL)}:1,${JSON.stringify(EVIL)}:2}`;

/** A value with each text in it, and each name, replaced by a hostile one, one after the other. */
function* changesOf(value: unknown, text: string): Generator<unknown> {
  yield text;
  yield { [text]: value };
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value as Record<string, unknown>)) {
    for (const changed of changesOf(member, text))
      yield Array.isArray(value)
        ? Object.assign([...(value as unknown[])], { [name]: changed })
        : { ...value, [name]: changed };
    if (!Array.isArray(value)) yield { ...value, [text]: member };
  }
}
/** Deeper than programs that parse or print it have stack. */
const DEEP = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;

describe('what strangers wrote', () => {
  const folder = temporaryFolder();
  let settings: Record<string, string>;
  let credential: JsonObject;
  let contents: string[];
  /** The codes of errors, and the words of answers, that were printed. */
  const codes = new Set<string>();

  const ask = (args: string[]) => askTdocInProcess(args, settings, { cwd: folder.path });
  /** Everything printed has no control character but the end of a line. Nothing but JSON has long lines. */
  async function expectHarmless(args: string[]): Promise<{ stdout: string; stderr: string }> {
    const printed = await ask(args);
    for (const [, code = ''] of printed.stderr.matchAll(/\[([A-Z_]{6,})\]/g)) codes.add(code);
    for (const line of [...printed.stdout.split('\n'), ...printed.stderr.split('\n')]) {
      expect(line.match(UNWANTED), `${JSON.stringify(args)}: ${line.slice(0, 500)}`).to.equal(null);
      if (!/^\s*["{[]/.test(line)) expect(line.length, line.slice(0, 500)).to.be.at.most(LONGEST_MESSAGE);
      expect(line).not.to.match(/^VALID/);
    }
    return printed;
  }

  before(async () => {
    const issuer = await createTestIssuer('localhost:2');
    credential = { ...(await issuer.sign({ type: ['BillOfLading'], scac: 'SGPU', blNumber: EVIL })) };
    const state = (await newState('SQLite'))!;
    await (await openState(state)).close();
    // A node whose errors are hostile too.
    const node = await serve((request, response) => {
      void text(request).then((body) => {
        const calls = [JSON.parse(body)].flat() as { id: number; method: string }[];
        const answers = calls.map(({ id, method }) => {
          const failure = { error: { code: -32000, message: LONG } };
          return { jsonrpc: '2.0', id, ...(method === 'eth_chainId' ? { result: '0x7a69' } : failure) };
        });
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify(body.startsWith('[') ? answers : answers[0]));
      });
    });
    settings = {
      ...state.settings,
      ENV_FILE: join(folder.path, 'none.env'),
      NET: '31337',
      RPC_URL: node.url,
      TOKEN_REGISTRY_ADDRESS: TEST_REGISTRY,
      BILL_OF_LADING_CONTEXT_URL: issuer.contextUrl,
      DID_DOCUMENT: join(folder.path, `did${EVIL.replace('\n', '')}.json`),
    };
    const event = {
      specversion: '1.0',
      id: 'a',
      source: 'urn:service:1:0x1',
      type: 'com.service.etr.minted',
    };
    const others = [
      { version: 1, tokenId: '1', chainId: 31337, registry: TEST_REGISTRY, blocks: [], network: 'x' },
      { ...event, data: { tokenId: '1', blockNumber: 1 } },
      { sink: 'https://a.example', protocol: 'HTTP', config: {}, types: ['x'], filters: [{ exact: {} }] },
      { credentialSubject: { type: ['BillOfLading'], scac: 'x' }, owner: '0x1', holder: '0x1' },
      {
        '@context': ['https://didlint.ownyourdata.eu/x'],
        id: 'did:web:x',
        verificationMethod: [{ id: 'x' }],
      },
    ];
    contents = [
      ...[credential, ...others].flatMap((one) =>
        [...changesOf(one, LONG)].map((changed) => JSON.stringify(changed)),
      ),
      ...[credential, ...others].map((one) => `{"deep":${DEEP},${JSON.stringify(one).slice(1)}`),
      JSON.stringify(credential).replace('"tokenId":', `"tokenId":${DEEP},"chain":`),
      TWICE,
      `{"a": ${EVIL}}`,
      EVIL,
      '',
    ];
  });

  /** The help of each command: that has its arguments and options. */
  async function helpOf(words: string[]): Promise<{ words: string[]; help: string }[]> {
    const help = (await ask([...words, '--help'])).stdout;
    if (!/^Usage: .*\[command\]/m.test(help)) return [{ words, help }];
    const all: { words: string[]; help: string }[] = [];
    for (const [, name = ''] of help.matchAll(/^ {2}([a-z][a-z-]+)(?= )/gm))
      if (!['help', 'service', 'receiver', 'devnet'].includes(name))
        all.push(...(await helpOf([...words, name])));
    return all;
  }

  it('reaches no terminal as it is, from a file or an argument of any command, nor from a node', async () => {
    const found = await helpOf([]);
    expect(found.length).to.be.greaterThan(25);
    for (const { words, help } of found) {
      const usage = /^Usage: tdoc (.*)$/m.exec(help)?.[1] ?? '';
      const positional = [...usage.matchAll(/<(\w+)>/g)].map(([, name]) => name ?? '');
      const options = [...help.matchAll(/^ {2}(--[\w-]+) <(\w+)/gm)].map(([, name = '']) => name);
      const hasFile = /[Ff]ile|JSON/.test(/^Arguments:\n([^]*?)\n\n/m.exec(help)?.[1] ?? '');
      const json = help.includes('--json') ? [[], ['--json']] : [[]];
      const reveal = usage.startsWith('derive') ? ['--reveal', `/credentialSubject/${EVIL}`] : [];
      for (const flags of json) {
        await expectHarmless([...words, ...positional.map(() => LONG), ...reveal, ...flags]);
        await expectHarmless([...words, LONG, `--${LONG}`, ...flags]);
        for (const option of options)
          await expectHarmless([...words, ...positional.map(() => '1'), ...reveal, option, LONG, ...flags]);
      }
      for (const [index, content] of hasFile ? contents.entries() : []) {
        const path = join(folder.path, `file ${index % 7} \u001b[2J\u202e.json`);
        writeFileSync(path, content);
        const flags = json[index % json.length] ?? [];
        await expectHarmless([...words, ...positional.map(() => path), ...reveal, ...flags]);
      }
    }
  });

  it('was read by the commands: they refused it for many reasons', () => {
    expect([...codes]).not.to.include('UNEXPECTED_ERROR');
    expect([...codes]).to.include.members([
      ...['ARGUMENT_INVALID', 'CREDENTIAL_INVALID', 'CREDENTIAL_STATUS_INVALID', 'EVIDENCE_INVALID'],
      ...['FILE_AMBIGUOUS', 'FILE_NOT_JSON', 'FILE_NOT_FOUND', 'NODE_FAILED', 'POINTER_MATCHES_NOTHING'],
      ...['PROOF_UNSUPPORTED', 'SUBSCRIPTION_INVALID', 'SUBSCRIPTION_UNKNOWN'],
    ]);
  });

  it('has the same value in what derive prints, and writes', async () => {
    const [path, out] = [join(folder.path, 'credential.json'), join(folder.path, 'derived.json')];
    writeFileSync(path, JSON.stringify(credential));
    const args = ['derive', path, '--reveal', '/credentialSubject/blNumber'];
    const { stdout } = await expectHarmless(args);
    await expectHarmless([...args, '--out', out]);
    for (const text of [stdout, readFileSync(out, 'utf8')])
      expect(JSON.parse(text)).to.have.nested.property('credentialSubject.blNumber', EVIL);
    expect(printableJson(credential)).to.satisfy(
      (text: string) => JSON.stringify(JSON.parse(text)) === JSON.stringify(credential),
    );
  });

  it('is harmless in stack traces too', async () => {
    const path = join(folder.path, 'ambiguous.json');
    writeFileSync(path, TWICE);
    const { stderr } = await expectHarmless(['--stack-traces', 'validate', path]);
    expect(stderr).to.match(/\n +at /);
  });
});
