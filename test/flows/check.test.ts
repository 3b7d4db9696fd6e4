import type { RequestListener } from 'node:http';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseEther, toQuantity, Wallet } from 'ethers';
import { Client } from 'pg';
import { catchUp } from '../../cli/check/check-node';
import { freePort } from '../../devnet/place';
import { BILL_OF_LADING_CONTEXT, readContextFile } from '../../service/base/published-files';
import { systemTime, pause } from '../../service/base/time';
import { mintTogether } from '../helpers/chain/direct-mint';
import { createLocalSetup, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';
import {
  refuseTipsBelow,
  startRpcProxy,
  THROUGH,
  type Answerer,
  type RpcProxy,
} from '../helpers/chain/rpc-proxy';
import { NODE_PROFILES } from '../helpers/chain/node-profiles';
import { asking, renumber } from '../helpers/chain/unusual-logs';
import { startPgBouncer } from '../helpers/database/pgbouncer';
import { POSTGRES_PASSWORD, postgresDatabase } from '../helpers/database/postgres';
import { serve, type TestServer } from '../helpers/http-server';
import { seededRandom } from '../helpers/seeded-random';
import { startService } from '../helpers/processes/running-service';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';

/** The time of an answer. */
const SLOW_MS = 200;

const POOR = Wallet.createRandom();

/** A node that answers some methods in its own way. */
const answering =
  (method: string, answer: (params: readonly unknown[]) => unknown): Answerer =>
  (asked, params) => {
    const own = asked === method ? answer(params) : undefined;
    return own === undefined ? 'none' : (own as ReturnType<Answerer>);
  };

const widthOf = ([filter]: readonly unknown[]): number => {
  const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string };
  return Number(toBlock) - Number(fromBlock) + 1;
};

describe('npx tdoc check', () => {
  let local: LocalSetup;
  let node: RpcProxy;
  let host: TestServer;
  let settings: Record<string, string>;
  const serveDid: RequestListener = (_request, response) =>
    response
      .writeHead(200, { 'content-type': 'application/did+json' })
      .end(readFileSync(settings.DID_DOCUMENT_PATH ?? ''));
  const serveContext: RequestListener = (_request, response) =>
    response.writeHead(200).end(readContextFile(BILL_OF_LADING_CONTEXT));
  /** The issuer's host, which is the subscriber's too. */
  let answer: RequestListener;
  let answerContext: RequestListener;

  before(async () => {
    host = await serve((request, response) => {
      if (request.url?.startsWith('/contexts/')) answerContext(request, response);
      else answer(request, response);
    });
    local = await createLocalSetup({ domain: `127.0.0.1:${host.port}` });
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', '{}', { mode: 0o600 });
    node = await startRpcProxy(local.node.url);
    settings = { ...local.settings, RPC_URL: node.url, WEBHOOK_URL: `${host.url}/webhook/secret-path` };
  });

  beforeEach(() => {
    answer = serveDid;
    answerContext = serveContext;
    node.answer(THROUGH);
  });

  /** `statuses`: those that are not `ok`, by the first word of the subject. */
  async function check(more: Record<string, string> = {}, ...flags: string[]) {
    const own = { ...settings, ...more };
    const { code, stdout } = await askTdocInProcess(['check', ...flags, '--json'], own);
    const { isReady, checks } = JSON.parse(stdout) as {
      isReady: boolean | null;
      checks: { status: string; subject: string; statement: string; remedy: string | null }[];
    };
    expect(code).to.equal(isReady === null ? 2 : isReady ? 0 : 1);
    expect(stdout).not.to.contain('secret-path');
    if (own.WALLET_PRIVATE_KEY) expect(stdout).not.to.contain(own.WALLET_PRIVATE_KEY);
    const text = checks.map((one) => `${one.subject}: ${one.statement} ${one.remedy ?? ''}`).join('\n');
    const worse = checks.filter(({ status }) => status !== 'ok' && status !== 'skipped');
    const statuses = Object.fromEntries(
      worse.map(({ subject, status }) => [subject.split(' ')[0] ?? '', status]),
    );
    return { code, statuses, text };
  }

  /** Checks, and expects these statuses. Returns the text. */
  async function expectChecked(
    exit: number,
    expected: Record<string, string>,
    more: Record<string, string> = {},
  ): Promise<string> {
    const { code, statuses, text } = await check(more);
    expect({ code, statuses }, text).to.deep.equal({ code: exit, statuses: expected });
    return text;
  }

  it('is ready where everything is right, and says what it found of each part', async () => {
    const text = await expectChecked(0, {});
    for (const part of [
      /settings .*complete, for localhost/,
      /node .*chain id 31337, answers in \d+ ms/,
      /node .*newest block \d+/,
      /node .*finalized is 0 blocks behind the newest/,
      /node .*eth_getLogs takes \d+ blocks, which is all there are/,
      /node .*refuses the logs of a block that it does not have/,
      /node .*answers batches/,
      /registry 0x.*created in block \d+/,
      /registry 0x.*is not paused/,
      /registry 0x.*a first start reads \d+ blocks, from block \d+ on: about \d+ calls\. They take /,
      /registry 0x.*the logs and receipts of its first block can be read/,
      /wallet 0x.*enough for \d+ mints .*with 3\d\d,\d{3} gas each, as the node estimates/,
      /wallet 0x.*none of which waits/,
      /wallet 0x.*would accept a mint/,
      /DID document http.*is that of did:web/,
      /context contexts\/bill-of-lading-v1\.json: https:.*\/contexts\/bill-of-lading-v1\.json serves it/,
      /webhook http.*not asked/,
      /database .*not there yet: the next start of the service makes it/,
    ])
      expect(text).to.match(part);
    const { stdout } = await askTdocInProcess(['check'], settings);
    expect(stdout)
      .to.match(/^ok {7}settings /m)
      .and.match(/^skipped {2}webhook /m)
      .and.match(/^ready: faults 0, warnings 0, not known 0$/m);
  });

  it('finds a paused registry, and nothing once it is unpaused', async () => {
    await tdocInProcess(['pause'], settings);
    const text = await expectChecked(1, { registry: 'fault' });
    expect(text).to.contain('is paused').and.contain('`npx tdoc unpause`');
    await tdocInProcess(['unpause'], settings);
    await expectChecked(0, {});
  });

  it('finds a node without the block tag of CONFIRMATIONS, and the number to use', async () => {
    const error = { code: -32602, message: 'invalid argument 0: hex string without 0x prefix' };
    node.answer(answering('eth_getBlockByNumber', ([block]) => (block === 'safe' ? { error } : undefined)));
    const text = await expectChecked(1, { node: 'fault' }, { CONFIRMATIONS: 'safe' });
    expect(text).to.contain('0 (the default of localhost) instead of "safe"');
    expect(await expectChecked(0, {}, { CONFIRMATIONS: '0' })).to.contain('does not know safe');
  });

  it('finds a wallet without funds and without the minter role, until it has both', async () => {
    const own = { WALLET_PRIVATE_KEY: POOR.privateKey };
    const poor = await expectChecked(1, { wallet: 'fault' }, own);
    expect(poor).to.contain('has 0 ETH, enough for 0 mints').and.contain('Send ETH to it');
    const remedy = `role grant --role minter --account ${POOR.address}`;
    expect(poor).to.contain(`\`npx tdoc ${remedy}\``);
    await tdocInProcess(remedy.split(' '), settings);
    const funder = new Wallet(DEPLOYER_KEY, local.client);
    await (await funder.sendTransaction({ to: POOR.address, value: parseEther('1') })).wait();
    await expectChecked(0, {}, own);
  });

  it('follows the estimate of a mint, and says that the gas is documented where there is none', async () => {
    node.answer(answering('eth_estimateGas', () => ({ result: toQuantity(1_200_000) })));
    expect(await expectChecked(0, {})).to.contain('with 1,380,000 gas each, as the node estimates');
    node.answer(answering('eth_estimateGas', () => ({ error: { code: -32601, message: 'not supported' } })));
    expect(await expectChecked(0, {})).to.contain('with 341,550 gas each, as documented');
  });

  it('finds a node that refuses the fees of now, and the setting that helps', async () => {
    const gwei = 1_000_000_000n;
    node.answer(refuseTipsBelow(37n * gwei));
    expect(await expectChecked(0, { wallet: 'warning' }))
      .to.contain('minimum needed 37000000000')
      .and.contain('Set LEAST_PRIORITY_FEE_GWEI');
    const text = await expectChecked(0, {}, { LEAST_PRIORITY_FEE_GWEI: '37' });
    expect(text).to.contain('the node takes the fees of now');
    node.answer(refuseTipsBelow(1_000n * gwei));
    expect(await expectChecked(1, { wallet: 'fault' })).to.contain('Set LEAST_PRIORITY_FEE_GWEI');
  });

  it('finds a node of another chain, and one that does not answer', async () => {
    const expected = { node: 'fault', registry: 'unknown', wallet: 'unknown' };
    expect(await expectChecked(1, expected, { NET: '1337' })).to.contain(
      'Set NET=31337, or point RPC_URL at a node of local.',
    );
    const down = { RPC_URL: `http://127.0.0.1:${await freePort(0)}` };
    expect(await expectChecked(1, expected, down)).to.match(
      /does not answer. Make it answer, or set RPC_URL/,
    );
  });

  describe('with several nodes', () => {
    let anvil: LocalSetup;
    before(async () => {
      anvil = await createLocalSetup({ program: 'anvil' });
    });

    it('checks registry and wallet through those that answer', async () => {
      const dead = `http://127.0.0.1:${await freePort(0)}`;
      const text = await expectChecked(
        1,
        { node: 'fault' },
        { RPC_URL: `${dead}, ${local.node.url} ${node.url}` },
      );
      expect(text).to.contain('nodes: all 2 have the same block').and.contain('would accept a mint');
    });

    it('finds one that is behind, and asks it for nothing else', async () => {
      await local.client.send('hardhat_mine', ['0x20']);
      node.answer(answering('eth_blockNumber', () => ({ result: '0x1' })));
      const text = await expectChecked(0, { nodes: 'warning' }, { RPC_URL: `${node.url} ${local.node.url}` });
      expect(text).to.match(/nodes: \S+ is \d+ blocks behind /);
    });

    it('finds one of another chain with the same chain id', async () => {
      const text = await expectChecked(
        1,
        { nodes: 'fault' },
        { RPC_URL: `${local.node.url} ${anvil.node.url}` },
      );
      expect(text).to.contain(`${anvil.node.url} has another block`);
    });

    it('is ready with anvil', async () => {
      const registry = { TOKEN_REGISTRY_ADDRESS: anvil.registryAddress };
      await expectChecked(0, {}, { RPC_URL: anvil.node.url, ...registry });
    });
  });

  for (const [what, answerer, subject, words] of [
    [
      'refuses wide ranges of logs',
      answering('eth_getLogs', (params) =>
        widthOf(params) > 1 ? { error: { code: -32005, message: 'range too wide: key=k' } } : undefined,
      ),
      'node',
      'eth_getLogs takes 1 blocks',
    ],
    [
      'forgets old logs',
      answering('eth_getLogs', (params) => (widthOf(params) === 1 ? { result: [] } : undefined)),
      'registry',
      'has no logs of its first block',
    ],
    [
      'gives no logs for a block that it does not have',
      answering('eth_getLogs', ([filter]) =>
        BigInt((filter as { blockHash?: string }).blockHash ?? 0) === 1n ? { result: [] } : undefined,
      ),
      'node',
      'gives no logs, and no error, for a block that it does not have',
    ],
    [
      'gives no logs by the hash of a block',
      answering('eth_getLogs', ([filter]) => {
        const { blockHash = '0x01' } = filter as { blockHash?: string };
        return BigInt(blockHash) === 1n ? undefined : { result: [] };
      }),
      'registry',
      'gives none by the hash of the block',
    ],
    [
      'does not have block 0',
      answering('eth_getBlockByNumber', ([block]) =>
        block === '0x0' ? { error: { code: 4444, message: 'pruned history unavailable' } } : undefined,
      ),
      'registry',
      'does not have block 0: block ',
    ],
    [
      'has neither block 0 nor the block of the registry',
      answering('eth_getBlockByNumber', ([block]) => (Number(block) < 20 ? { result: null } : undefined)),
      'registry',
      "has neither block 0 nor the registry's first block ",
    ],
    [
      'forgets old receipts',
      answering('eth_getTransactionReceipt', () => ({ result: null })),
      'registry',
      'but no receipts',
    ],
  ] as const) {
    it(`warns of a node that ${what}`, async () => {
      await local.client.send('hardhat_mine', ['0x20']);
      node.answer(answerer);
      const text = await expectChecked(0, { [subject]: 'warning' });
      expect(text).to.contain(words);
    });
  }

  it('says how many blocks and calls a catch-up takes, and how long at the rate of the answers', async () => {
    const range = { fromBlock: 1, head: 12_400_000 };
    expect(catchUp({ callsPerBlock: 8 / 2_000, msPerCall: 150 }, range).statement).to.match(
      /about 49,600 calls\. They take 59 minutes at 14 a second, .* and 55 minutes at the 15 a second/,
    );
    await local.client.send('hardhat_mine', ['0x20']);
    const head = await local.client.getBlockNumber();
    node.answer(async (method, _params, forward) => {
      if (method === 'eth_getLogs') await pause(systemTime, SLOW_MS);
      return forward();
    });
    const text = await expectChecked(0, {}, { START_BLOCK: String(head - 19) });
    const [, perSecond] = /reads 20 blocks, .* at (\d+) a second, as/.exec(text) ?? [];
    expect(Number(perSecond)).to.be.within(1, 2_000 / SLOW_MS);
    node.answer(NODE_PROFILES['has no eth_getLogs']?.(parts()) ?? THROUGH);
    const refused = { node: 'warning', registry: 'warning' };
    const more = await expectChecked(0, refused, { START_BLOCK: String(head - 19) });
    expect(more).to.contain('reads 20 blocks').and.to.contain('about 60 calls');
  });

  const parts = () => ({ random: seededRandom(1), time: systemTime, ask: asking(local.node.url) });

  /** The table of profiles in test/helpers/chain/node-profiles.ts has more, with which the service reads. */
  for (const [what, profile, words, expected] of [
    [
      'gives logs only with an address',
      'gives logs only with an address, as PublicNode does',
      'gives no logs without an address: title escrows are asked for by their addresses, 1,000 at once',
      {},
    ],
    [
      'allows fewer blocks without an address',
      'allows ten blocks without an address and many with one, as dRPC does',
      'gives logs of 10 blocks only without an address',
      {},
    ],
    [
      'has no eth_getLogs',
      'has no eth_getLogs',
      'Events are read from the receipts of blocks',
      { node: 'warning', registry: 'warning' },
    ],
  ] as const)
    it(`says how events are read from a node that ${what}`, async () => {
      await local.client.send('hardhat_mine', ['0x20']);
      expect(await expectChecked(0, {})).to.contain('events are read by topic, for any number of tokens');
      node.answer(NODE_PROFILES[profile]?.(parts()) ?? THROUGH);
      const text = await expectChecked(0, expected);
      expect(text).to.contain(words);
    });

  for (const [logs, receipts] of [
    ['transaction', 'transaction'],
    ['block', 'transaction'],
  ] as const)
    it(`warns of a node that counts logs within the ${logs}, and in receipts the ${receipts}`, async () => {
      await mintTogether(local, await local.account(1), 2);
      expect(await expectChecked(0, {})).to.contain('counts logs within the block');
      node.answer(async (method, _params, forward) =>
        renumber(method, await forward(), { logs, receipts }, asking(local.node.url)),
      );
      const text = await expectChecked(0, { node: 'warning' });
      expect(text).to.contain('counts logs within each transaction').and.to.contain('RPC_URL');
    });

  it('finds another DID document at DOMAIN, and cannot tell while nothing answers there', async () => {
    answer = (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/did+json' }).end('{"id": "did:web:other"}');
    await expectChecked(1, { DID: 'fault' });
    answer = (_request, response) => response.writeHead(503).end();
    await expectChecked(2, { DID: 'unknown' });
  });

  it('finds another context at DOMAIN, and cannot tell while nothing answers there', async () => {
    answerContext = (_request, response) =>
      response.writeHead(200).end(`${readContextFile(BILL_OF_LADING_CONTEXT).toString()} `);
    const other = await expectChecked(1, { context: 'fault' });
    expect(other).to.contain('serves other bytes Let DOMAIN lead to the service');
    answerContext = (_request, response) => response.writeHead(404).end();
    expect(await expectChecked(1, { context: 'fault' })).to.contain('answers 404');
    answerContext = (_request, response) => response.writeHead(503).end();
    await expectChecked(2, { context: 'unknown' });
  });

  it('finds a changed did.json, until it is removed and written again', async () => {
    const path = settings.DID_DOCUMENT_PATH ?? '';
    writeFileSync(path, readFileSync(path, 'utf8').replace('"assertionMethod"', '"assertion"'));
    expect(await expectChecked(1, { DID: 'fault' })).to.contain('Restore the file from a copy.');
    rmSync(path);
    await tdocInProcess(['did'], settings);
    await expectChecked(0, {});
  });

  it('sends a signed test event on request, and finds a webhook that does not take it', async () => {
    const received: string[] = [];
    let status = 204;
    answer = (request, response) => {
      if (request.method !== 'POST') return void serveDid(request, response);
      received.push(String(request.headers['x-service-signature']));
      request.resume();
      response.writeHead(status).end();
    };
    const taken = await check({}, '--send-test-event');
    expect(taken.text).to.match(/took the test event: 204 after \d+ ms/);
    expect(received).to.have.length(1);
    expect(received[0]).to.match(/^\S{20,}/);
    status = 500;
    expect((await check({}, '--send-test-event')).statuses).to.deep.equal({ webhook: 'fault' });
  });

  it('finds missing and wrong settings', async () => {
    const missing = { DOMAIN: '', WALLET_PRIVATE_KEY: '', DID_KEY_PAIRS: '' };
    expect(await expectChecked(0, { settings: 'warning' }, missing)).to.contain(
      'documents cannot be issued without DOMAIN',
    );
    await expectChecked(1, { settings: 'fault' }, { WALLET_PRIVATE_KEY: '' });
    const wrong = { CONFIRMATIONS: 'many' };
    expect(await expectChecked(1, { settings: 'fault', all: 'unknown' }, wrong)).to.contain('CONFIRMATIONS');
  });

  it('finds a registry that is not there, and a folder that no database can be made in', async () => {
    const noRegistry = { registry: 'fault', wallet: 'unknown' };
    expect(await expectChecked(1, noRegistry, { TOKEN_REGISTRY_ADDRESS: POOR.address })).to.contain(
      'Deploy one with `npx hardhat deploy`',
    );
    const folder = join(local.folder, 'file');
    writeFileSync(folder, '');
    const noFolder = { DATA_DIR: join(folder, 'data') };
    expect(await expectChecked(1, { database: 'fault' }, noFolder)).to.contain(
      'Set DATA_DIR to a folder that can be written to',
    );
  });

  it('finds a pooler that does not pool sessions', async function () {
    const database = await postgresDatabase();
    const pooler = database && (await startPgBouncer(database.url, { pool_mode: 'transaction' }));
    if (pooler === undefined) return this.skip();
    expect(await expectChecked(1, { database: 'fault' }, { DATABASE_URL: pooler.url })).to.match(
      /pooler of transactions or statements.* Set `pool_mode = session` in PgBouncer/,
    );
  });

  it('finds a role that may not create the tables of PostgreSQL, and a read-only server', async function () {
    const database = await postgresDatabase();
    if (database === undefined) return this.skip();
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(`create role checked login password '${POSTGRES_PASSWORD}'`);
    await client.query('revoke create on schema public from public');
    const { rows } = await client.query<{ name: string }>('select current_database() as name');
    const DATABASE_URL = database.url.replace('//postgres:', '//checked:');
    expect(await expectChecked(1, { database: 'fault' }, { DATABASE_URL })).to.contain(
      'GRANT USAGE, CREATE ON SCHEMA public TO checked;',
    );
    await client.query(`alter database ${rows[0]?.name} set default_transaction_read_only = on`);
    await client.end();
    expect(await expectChecked(1, { database: 'fault' }, { DATABASE_URL: database.url })).to.contain(
      'the database is read-only',
    );
  });

  it('opens the database of a running service', async () => {
    await startService(settings);
    expect((await check()).text).to.match(/database in .*: can be opened/);
  });
});
