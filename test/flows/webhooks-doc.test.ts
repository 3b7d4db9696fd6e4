import { execFile } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { ZeroAddress, parseUnits } from 'ethers';
import type { Devnet, Issued } from '../../devnet/start-devnet';
import { verifySignature } from '../../receiver/verify';
import { type Jwks } from '../../service/base/signing-keys';
import { inheritedEnvironment } from '../../service/config/config';
import { type ConfigFile } from '../../service/config/followed-registries';
import type { CloudEvent } from '../../service/events/cloud-event';
import { realisedOptions } from '../../service/base/delivery-options';
import { TitleEscrowFactory__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { tokenIdAsUint256 } from '../helpers/token-id';
import { eventually } from '../helpers/eventually';
import { runningDevnet } from '../helpers/processes/running-devnet';
import { temporaryFolder } from '../helpers/temporary-folder';
import { quoted, readDocument, tables, type Section } from '../helpers/pages/markdown';
import { startRawReceiver, type RawReceiver } from '../helpers/receiver/raw-receiver';
import { checkEvent } from '../helpers/receiver/schema-problems';
import { liveThrough, type Operation } from '../helpers/chain/token-life';

const PREFIX = 'com.service.etr.';

/** A value with its leaves replaced by the names of their types. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner)]));
}

/** The payload of which a section of the reference shows the members, each with an example. */
function examplePayload(section: Section): object {
  const [rows = []] = tables(section);
  const members = rows.map((row): [string, string | boolean] => {
    const words = row.flatMap(quoted);
    const example = words.at(-1) ?? '';
    return [words[0] ?? '', example === 'true' || example];
  });
  return Object.fromEntries(members);
}

describe('the pages about webhooks', () => {
  const { code } = readDocument('docs/webhooks.md');
  const reference = readDocument('docs/webhook-reference.md');
  const settings = readDocument('docs/webhook-operating.md').code('Settings', 'json');
  const place = temporaryFolder();
  let devnet: Devnet;
  let receiver: RawReceiver;
  let issued: Issued;
  let operations: Operation[];
  let events: CloudEvent[];
  /** The newest block when the last event had come. */
  let head: number;

  before(async () => {
    receiver = await startRawReceiver();
    writeFileSync(join(place.path, 'service.config.json'), settings);
    devnet = await runningDevnet({
      folder: place.path,
      receiver: receiver.url,
      // Confirmations are those of the network.
      network: 'amoy',
      blockTime: 0.05,
    });
    const parties = { owner: 1, holder: 2, remarks: 'shipped on board' };
    issued = await devnet.issue(undefined, parties);
    const { tokenId, transactionHash } = issued;
    operations = await liveThrough(devnet, { tokenId: BigInt(`0x${tokenId}`), transactionHash });
    // Each is the last event of its queue.
    for (const last of ['burned', 'registry_unpaused']) {
      await eventually(last, () =>
        receiver.deliveries.some(({ body: sent }) => sent.includes(PREFIX + last)),
      );
    }
    head = await devnet.client.getBlockNumber();
    events = receiver.deliveries.map(({ body: sent }) => JSON.parse(sent.toString()) as CloudEvent);
  });

  it('is right that each of the five events of a mint is sent once, in the order of the chain', async () => {
    const { tokenId, transactionHash } = issued;
    const ofMint = events.filter(({ data }) => data.transactionHash === transactionHash);
    const registry = TradeTrustTokenStandard__factory.connect(devnet.registryAddress, devnet.client);
    const factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), devnet.client);
    const escrowAddress = (await factory.getEscrowAddress(registry, tokenIdAsUint256(tokenId))).toLowerCase();
    const [, owner, holder] = devnet.accounts.map((account) => account.toLowerCase());
    const token = tokenIdAsUint256(tokenId).toString();
    const remark = String((ofMint[1]?.data.payload as { remark?: string }).remark);
    expect(remark).to.match(/^0x[0-9a-f]{32}$/);
    expect(ofMint.map(({ type, data }) => [type.slice(PREFIX.length), data.payload])).to.deep.equal([
      ['escrow_created', { escrowAddress }],
      ['minted', { tokenId: token, owner, holder, escrowAddress, remark }],
      ['beneficiary_transfer', { fromBeneficiary: ZeroAddress, toBeneficiary: owner, remark: '0x' }],
      ['holder_transfer', { fromHolder: ZeroAddress, toHolder: holder, remark: '0x' }],
      ['token_received', { escrowAddress, beneficiary: owner, holder, isMinting: true, remark }],
    ]);
  });

  it('is right about the envelope of an event, and its block', async () => {
    const { tokenId, transactionHash } = issued;
    const [first] = events;
    const receipt = await devnet.client.getTransactionReceipt(transactionHash);
    const block = await devnet.client.getBlock(receipt?.blockNumber ?? -1);
    const address = devnet.registryAddress.toLowerCase();
    expect(first).to.deep.include({
      specversion: '1.0',
      source: `urn:service:80002:${address}`,
      datacontenttype: 'application/json',
      time: new Date(Number(block?.timestamp) * 1000).toISOString(),
      subject: tokenIdAsUint256(tokenId).toString(),
    });
    expect(first?.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(first?.data).to.deep.include({
      chainKey: 'polygon-amoy',
      chainId: 80002,
      registryAddress: address,
      tokenId: tokenIdAsUint256(tokenId).toString(),
      tokenIdHex: tokenId,
      blockNumber: receipt?.blockNumber,
      transactionHash,
      // The escrow's Initialized is the transaction's first log.
      logIndex: 1,
    });
  });

  it('is compared with a devnet for Amoy: its confirmations, and the least priority fee there', async () => {
    for (const { data } of events) expect(head - data.blockNumber).to.be.at.least(32);
    const mint = await devnet.client.getTransaction(issued.transactionHash);
    // The node estimates 1 gwei.
    expect(mint).to.include({ type: 2, chainId: 80002n, maxPriorityFeePerGas: parseUnits('25', 'gwei') });
    expect(readFileSync(join(place.path, 'service.log'), 'utf8')).not.to.contain('gas station');
  });

  it('has a valid example of every event type, with the fields of its payload', () => {
    const types = new Set(events.map(({ type }) => type));
    expect([...types]).to.have.length(16);
    for (const type of types) {
      const payload = examplePayload(reference.section(type.slice(PREFIX.length)));
      const ofType = events.filter((event) => event.type === type);
      checkEvent({ ...ofType[0], data: { ...ofType[0]?.data, payload } });
      for (const { data } of ofType) expect(shapeOf(data.payload), type).to.deep.equal(shapeOf(payload));
    }
  });

  it('has a complete event of a token and of a registry, with the fields of every such event', () => {
    const [, ofToken = ''] = code('A delivery', 'http').trimEnd().split('\n\n');
    const whole = [ofToken, reference.code('registry_paused', 'json')].map(
      (text) => JSON.parse(text) as CloudEvent,
    );
    const envelopeOf = (event: CloudEvent): unknown =>
      shapeOf({ ...event, data: { ...event.data, payload: {} } });
    for (const { subject, data } of whole) expect(subject).to.equal(data.tokenId);
    whole.forEach(checkEvent);
    for (const event of events) {
      const example = whole[event.data.tokenIdHex === undefined ? 1 : 0];
      expect(envelopeOf(event), event.type).to.deep.equal(example && envelopeOf(example));
    }
  });

  it('explains every field of the envelope, of data and of each payload, and no other', () => {
    const explained = (heading: string, table = 0): string[] =>
      (tables(reference.section(heading))[table] ?? []).flatMap(([field]) => quoted(field ?? ''));
    const token = events.find(({ data }) => data.tokenIdHex !== undefined);
    expect(explained('The body')).to.deep.equal(Object.keys(token ?? {}));
    expect(explained('The body', 1)).to.deep.equal(Object.keys(token?.data ?? {}));
    for (const { type, data } of events) {
      expect(explained(type.slice(PREFIX.length)), type).to.deep.equal(Object.keys(data.payload));
    }
  });

  it('lists the events of each operation in the order in which they are sent', () => {
    const [rows = []] = tables(reference.section('What each operation sends'));
    const promised = new Map(
      rows.map((cells) => [(cells[0] ?? '').replaceAll('`', ''), quoted(cells.at(-1) ?? '')] as const),
    );
    for (const { name, transactionHash } of operations) {
      const sent = events.filter(({ data }) => data.transactionHash === transactionHash);
      expect(
        sent.map(({ type }) => type.slice(PREFIX.length)),
        name,
      ).to.deep.equal(promised.get(name));
      const positions = sent.map(({ data }) => data.logIndex);
      expect(positions, name).to.deep.equal([...positions].sort((a, b) => a - b));
    }
    expect(operations.map(({ name }) => name)).to.include.members([...promised.keys()]);
  });

  it('has a test delivery that its public key verifies, with the headers of a real one', () => {
    const [head = '', body = ''] = code('A delivery', 'http').trimEnd().split('\n\n');
    const header = /^X-Service-Signature: (.*)$/m.exec(head)?.[1];
    const publicKey = createPublicKey(code('A delivery to test with', 'pem'));
    expect(head).to.contain(`content-length: ${Buffer.byteLength(body)}\n`.trimEnd());
    expect(verifySignature(header, Buffer.from(body), publicKey)).to.equal(true);
    const names = head
      .split('\n')
      .slice(1)
      .map((line) => line.split(':')[0]?.toLowerCase());
    expect(names).to.have.members(Object.keys(receiver.deliveries[0]?.headers ?? {}));
  });

  it('has example settings with the defaults, which the service accepts', () => {
    const { webhook } = JSON.parse(settings) as ConfigFile;
    const { url, headers: ownHeaders, ...options } = webhook ?? {};
    expect(url).to.be.a('string');
    expect(options).to.deep.equal(realisedOptions({}));
    const [name = '', value] = Object.entries(ownHeaders ?? {})[0] ?? [];
    for (const { headers } of receiver.deliveries)
      expect(headers).to.include({ [name.toLowerCase()]: value });
  });

  it('has published keys as the service answers them, one of them that of the test delivery', async () => {
    const example = JSON.parse(code('The published keys', 'json')) as Jwks;
    const answer = await fetch(`${devnet.serviceUrl}/.well-known/jwks.json`);
    const { keys } = (await answer.json()) as Jwks;
    for (const key of example.keys) expect(shapeOf(key)).to.include(shapeOf(keys[0]));
    const ofTest = createPublicKey(code('A delivery to test with', 'pem')).export({ format: 'jwk' });
    expect(example.keys[0]).to.include(ofTest);
    expect(code('A delivery', 'http')).to.contain(`\nX-Service-Key-Id: ${example.keys[0]?.kid}\n`);
  });

  it('has a Node.js module that finds the key of a delivery among the published ones', async () => {
    writeFileSync(join(place.path, 'published-keys.mjs'), code('The published keys', 'js'));
    const kid = String(receiver.deliveries[0]?.headers['x-service-key-id']);
    const [known, unknown] = [kid, 'unknown'].map(
      (id) => `await publicKeyOf('${id}', '${devnet.serviceUrl}/.well-known/jwks.json')`,
    );
    const program = `import { publicKeyOf } from './published-keys.mjs';
      process.stdout.write((${known}).export({ type: 'spki', format: 'pem' }) + (${unknown}));`;
    const command = ['--input-type=module', '--eval', program];
    // Not synchronously: the service in this process has to answer.
    const options = { cwd: place.path, env: inheritedEnvironment() };
    const { stdout } = await promisify(execFile)(process.execPath, command, options);
    expect(stdout).to.equal(`${readFileSync(devnet.publicKeyFile, 'utf8')}undefined`);
  });
});
