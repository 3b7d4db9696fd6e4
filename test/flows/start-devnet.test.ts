import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { createClient } from '../../client/create-client';
import type { Devnet } from '../../devnet/start-devnet';
import { ChainWriter, readKeptChain } from '../../devnet/kept-chain';
import { nodeClient } from '../../devnet/hardhat-node';
import { OPERATIONS, type OperationName } from '../../devnet/operations';
import { subscribe } from '../../devnet/service';
import { startRpcProxy, THROUGH } from '../helpers/chain/rpc-proxy';
import { errorOf } from '../helpers/error-of';
import { readDocument } from '../helpers/pages/markdown';
import { runningDevnet } from '../helpers/processes/running-devnet';
import { temporaryFolder } from '../helpers/temporary-folder';

const ACCOUNT = /^0x[0-9a-fA-F]{40}$/;

describe('startDevnet', () => {
  let devnet: Devnet;
  /** Takes the next webhooks of a token, and returns their types. */
  const arrived = async (tokenId: string, count: number): Promise<string[]> => {
    const types: string[] = [];
    for (let taken = 0; taken < count; taken++)
      types.push((await devnet.webhooks.next({ tokenId })).type.replace('com.service.etr.', ''));
    return types;
  };

  before(async () => {
    devnet = await runningDevnet({ retractions: true });
  });

  it('names everything that a test needs', async () => {
    expect(devnet.accounts).to.have.length(20);
    for (const account of devnet.accounts) expect(account).to.match(ACCOUNT);
    expect(devnet.chainId).to.equal(31337);
    expect((await fetch(`${devnet.serviceUrl}/health`)).status).to.equal(200);
    for (const file of [devnet.publicKeyFile, devnet.didDocumentFile, devnet.envFile])
      expect(existsSync(file)).to.equal(true);
    const authorization = `Bearer ${devnet.adminApiKey}`;
    const answer = await fetch(`${devnet.serviceUrl}/subscriptions`, { headers: { authorization } });
    expect(answer.status).to.equal(200);
  });

  it('sends every operation as the account that may, and each becomes its webhooks', async () => {
    const { tokenId } = await devnet.issue(undefined, { owner: 1, holder: 2 });
    expect(await arrived(tokenId, 5)).to.include('minted');
    const sent: OperationName[] = [];
    const did = async (name: OperationName, work: Promise<unknown>, events: string[]): Promise<void> => {
      await work;
      sent.push(name);
      expect(await arrived(tokenId, events.length), name).to.deep.equal(events);
    };
    await did('nominate', devnet.nominate(tokenId, { to: 3 }), ['nomination']);
    const given = ['beneficiary_transfer', 'nomination'];
    await did('transferBeneficiary', devnet.transferBeneficiary(tokenId, { to: 3 }), given);
    const rejected = ['beneficiary_transfer', 'reject_transfer_beneficiary'];
    await did('rejectTransferBeneficiary', devnet.rejectTransferBeneficiary(tokenId), rejected);
    await did('transferHolder', devnet.transferHolder(tokenId, { to: 4 }), ['holder_transfer']);
    const refused = ['holder_transfer', 'reject_transfer_holder'];
    await did('rejectTransferHolder', devnet.rejectTransferHolder(BigInt(`0x${tokenId}`)), refused);
    await devnet.transferHolder(tokenId, { to: devnet.accounts[1] ?? '' });
    expect(await arrived(tokenId, 1)).to.deep.equal(['holder_transfer']);
    const both = ['beneficiary_transfer', 'holder_transfer'];
    await did('transferOwners', devnet.transferOwners(tokenId, { to: 5 }), both);
    const back = [...both, 'reject_transfer_owners'];
    await did('rejectTransferOwners', devnet.rejectTransferOwners(`0x${tokenId}`), back);
    await did('returnToIssuer', devnet.returnToIssuer(tokenId), [
      'nomination',
      'surrendered',
      'return_to_issuer',
    ]);
    await did('restore', devnet.restore(tokenId, { remark: 'not accepted' }), ['restored', 'token_received']);
    await devnet.returnToIssuer(tokenId);
    await arrived(tokenId, 3);
    await did('burn', devnet.burn(tokenId), ['beneficiary_transfer', 'holder_transfer', 'shred', 'burned']);
    // A burned token has no holder.
    expect((await errorOf(devnet.transferHolder(tokenId, { to: 1 }))).reason).to.equal('InactiveTitleEscrow');
    await devnet.pause();
    expect((await devnet.webhooks.next({ type: 'registry_paused' })).data.tokenId).to.equal('0');
    await devnet.unpause();
    await devnet.webhooks.next({ type: 'registry_unpaused' });
    expect([...sent, 'pause', 'unpause']).to.have.members(Object.keys(OPERATIONS));
  });

  it('rejects an operation with the name of the error of the contract', async () => {
    const { tokenId } = await devnet.issue(undefined, { owner: 1, holder: 2 });
    const error = await errorOf(devnet.transferHolder(tokenId, { to: 3, as: 4 }));
    expect(error).to.include({ code: 'OPERATION_REFUSED', reason: 'CallerNotHolder' });
    expect(error.message).to.match(/^CallerNotHolder: the contract refuses transferHolder of account 0x/);
    expect(await errorOf(devnet.restore(tokenId))).to.have.property('reason', 'TokenNotReturnedToIssuer');
    const unknown = devnet.transferHolder('42', { to: 3 });
    expect(await errorOf(unknown)).to.have.property('code', 'ARGUMENT_INVALID');
    for (const [wrong, problem] of [
      [{ to: 99 }, /^to is 99: /],
      [{ to: 3, holder: 'x' }, /^holder is x: /],
      [{ to: 3, as: 'x' }, /^as is x: /],
    ] as const) {
      const error = await errorOf(devnet.transferOwners(tokenId, wrong));
      expect(error.code).to.equal('ARGUMENT_INVALID');
      expect(error.message).to.match(problem);
    }
    expect(await errorOf(devnet.nominate('x', { to: 1 }))).to.have.property('code', 'TOKEN_ID_INVALID');
  });

  it('names the account of an operation that the node does not sign for', async () => {
    const foreign = Wallet.createRandom().address;
    const { tokenId } = await devnet.issue(undefined, { owner: 1, holder: foreign });
    const error = await errorOf(devnet.transferHolder(tokenId, { to: 1 }));
    expect(error.code).to.equal('ARGUMENT_INVALID');
    expect(error.message).to.contain(`The holder, who may send transferHolder, is ${foreign}: the node`);
    expect(await errorOf(devnet.pause({ as: foreign }))).to.have.property('code', 'OPERATION_REFUSED');
    const given = await errorOf(devnet.transferHolder(tokenId, { to: 1, as: foreign }));
    expect(given.message).to.contain(`\`as\` is ${foreign}: the node does not sign for it`);
  });

  it('says which webhooks did arrive if the one that is waited for does not', async () => {
    const { tokenId } = await devnet.issue();
    const { data } = await devnet.webhooks.next({ type: 'com.service.etr.token_received', tokenId });
    expect(data.payload.isMinting).to.equal(true);
    const error = await errorOf(devnet.webhooks.next({ type: 'burned', tokenId, withinMs: 50 }));
    expect(error.code).to.equal('WEBHOOK_MISSING');
    // Events of an earlier document may come between them.
    for (const type of ['escrow_created', 'minted'])
      expect(error.message).to.contain(`${type} of token ${tokenId.slice(0, 8)}…`);
    const wrong = { type: 'brned' as 'burned' };
    expect((await errorOf(devnet.webhooks.next(wrong))).message).to.contain('Known: minted, burned');
  });

  it('delivers again what its receiver refused', async () => {
    const { tokenId } = await devnet.issue();
    await arrived(tokenId, 5);
    // 200 would acknowledge the event and lose it.
    expect(() => devnet.receiver.refuse(200)).to.throw('300 to 599');
    devnet.receiver.refuse(500);
    await devnet.transferHolder(tokenId, { to: 2 });
    const refused = await errorOf(devnet.webhooks.next({ tokenId, withinMs: 500 }));
    expect(refused.code).to.equal('WEBHOOK_MISSING');
    devnet.receiver.accept();
    await devnet.webhooks.next({ type: 'holder_transfer', tokenId });
  });

  it('keeps what was delivered after the service is restarted', async () => {
    const { tokenId } = await devnet.issue();
    await arrived(tokenId, 5);
    await Promise.all([devnet.restartService(), devnet.restartService()]);
    await devnet.transferHolder(tokenId, { to: 2 });
    expect(await arrived(tokenId, 1)).to.deep.equal(['holder_transfer']);
  });

  describe('reorganise', () => {
    it('mines the transactions again in a longer branch, and the receiver is told', async () => {
      const { tokenId } = await devnet.issue();
      await arrived(tokenId, 5);
      const { blockNumber } = await devnet.transferHolder(tokenId, { to: 2 });
      const [hash, sent] = [await hashOf(blockNumber), await devnet.webhooks.next({ tokenId })];
      expect(await devnet.reorganise(1)).to.deep.equal({
        oldHead: blockNumber,
        commonBlock: blockNumber - 1,
        newHead: blockNumber + 1,
      });
      expect(await hashOf(blockNumber)).not.to.equal(hash);
      const { data } = await devnet.webhooks.next({ type: 'retracted', tokenId });
      expect(data.retracts).to.equal(sent.id);
      const again = await devnet.webhooks.next({ type: 'holder_transfer', tokenId });
      expect(again.id).not.to.equal(sent.id);
      expect(again.data.blockNumber).to.equal(blockNumber);
    });

    it('drops the transactions on request, and keeps older blocks', async () => {
      const { tokenId } = await devnet.issue();
      await arrived(tokenId, 5);
      const first = await devnet.transferHolder(tokenId, { to: 2 });
      const hash = await hashOf(first.blockNumber);
      await devnet.transferHolder(tokenId, { to: 3 });
      await arrived(tokenId, 2);
      await devnet.reorganise(1, { transactions: 'dropped' });
      expect(await hashOf(first.blockNumber)).to.equal(hash);
      await devnet.webhooks.next({ type: 'retracted', tokenId });
      // Account 2 is the holder again.
      expect(await devnet.transferHolder(tokenId, { to: 4, as: 2 })).to.have.property('blockNumber');
    });

    it('refuses to take back the registry, and an unknown fate of the transactions', async () => {
      const error = await errorOf(devnet.reorganise(10_000));
      expect(error.code).to.equal('ARGUMENT_INVALID');
      expect(error.message).to.match(/The chain has \d+ blocks since its registry was made/);
      const unknown = await errorOf(devnet.reorganise(1, { transactions: 'drop' as 'dropped' }));
      expect(unknown.message).to.equal("transactions is drop: give 'mined again' or 'dropped'.");
    });

    it('is noted in a kept chain with each block once, also after the node did not answer', async () => {
      const folder = temporaryFolder();
      const file = join(folder.path, 'chain.jsonl');
      const proxy = await startRpcProxy(devnet.nodeUrl);
      const client = nodeClient(proxy.url);
      const head = { chainId: 31337, startedAt: '', registryAddress: devnet.registryAddress, baseBlock: 1 };
      const writer = new ChainWriter(client, file, { head, steps: [] });
      await writer.replaceBlocks(() => devnet.issue());
      proxy.answer((method, [, isWhole]) =>
        method === 'eth_getBlockByNumber' && isWhole ? { error: { code: -32000, message: 'busy' } } : 'none',
      );
      const failed = writer.replaceBlocks(() => devnet.reorganise(1));
      await failed.catch(() => proxy.answer(THROUGH));
      await writer.stop();
      const kept = readKeptChain(file)?.steps.map((step) => 'hash' in step && step.hash) ?? [];
      expect(kept).to.have.length(await devnet.client.getBlockNumber());
      for (const [index, hash] of kept.entries()) expect(hash).to.equal(await hashOf(index + 1));
      writeFileSync(file, '{"chainId":31');
      expect(readKeptChain(file), 'a file whose first line is cut off').to.equal(undefined);
      client.destroy();
      await proxy.close();
      folder.remove();
    });

    const hashOf = async (number: number): Promise<string> =>
      (await devnet.client.getBlock(number))?.hash ?? '';
  });

  describe('in the test of docs/testing.md', () => {
    // Other imports cannot be compiled.
    const page = readDocument('docs/testing.md')
      .code('Testing against it', 'js')
      .replace("import assert from 'node:assert/strict';\n", '')
      .replace("import { startDevnet } from 'transferable-document-service/devnet';\n", '');
    const program = compileFunction(page, ['assert', 'startDevnet']) as (...given: unknown[]) => void;
    program(assert, async () => Object.create(devnet, { stop: { value: () => undefined } }) as Devnet);
  });

  it('has one subscription of its own, also after the receiver changed', async () => {
    const { serviceUrl, adminApiKey, receiverUrl } = devnet;
    const client = createClient({ url: serviceUrl, key: adminApiKey });
    const sinks = async () => (await client.GET('/subscriptions')).data?.map(({ sink }) => sink);
    await client.POST('/subscriptions', { body: { sink: 'http://127.0.0.1:9/own', protocol: 'HTTP' } });
    await subscribe(serviceUrl, adminApiKey, 'http://127.0.0.1:9/');
    expect(await sinks()).to.have.members(['http://127.0.0.1:9/own', 'http://127.0.0.1:9/']);
    await subscribe(serviceUrl, adminApiKey, receiverUrl);
    expect(await sinks()).to.have.members(['http://127.0.0.1:9/own', receiverUrl]);
  });

  // The last: nothing works after these.
  describe('failures', () => {
    it('reorganise says that it cannot mine older blocks again if a call changed the state', async () => {
      const { tokenId } = await devnet.issue();
      await devnet.client.send('hardhat_setBalance', [devnet.accounts[5], '0x1']);
      await devnet.transferHolder(tokenId, { to: 2 });
      await devnet.transferHolder(tokenId, { to: 3 });
      expect((await errorOf(devnet.reorganise(1))).code).to.equal('CHAIN_NOT_REPLAYED');
    });

    it('reports a service that ends by itself, also to those who wait for webhooks', async () => {
      const waiting = errorOf(devnet.webhooks.next({ type: 'burned' }));
      const ids = execFileSync('pgrep', ['-P', String(process.pid), '-f', 'dist/service/main.js']);
      process.kill(parseInt(ids.toString()), 'SIGKILL');
      expect((await errorOf(devnet.failure)).message).to.contain('The service ended by itself.');
      expect((await waiting).code).to.equal('DEVNET_FAILED');
    });
  });
});
