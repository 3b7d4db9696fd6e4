import { expect } from 'chai';
import { id as keccakOfText } from 'ethers';
import { systemTime } from '../../service/base/time';
import { connectNode, type Chain } from '../../service/chain/chain';
import { runnerOf } from '../../service/chain/read-state';
import { createRegistryFinder } from '../../service/registry/registry-contracts';
import { ADMIN_ROLE, readRoles, type RolesSource } from '../../cli/registry-admin/roles';
import { codeOf } from '../../service/base/errors';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import type { CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startRpcProxy, THROUGH, type RpcProxy } from '../helpers/chain/rpc-proxy';
import { stopLater } from '../helpers/resources';
import { VirtualTime } from '../helpers/virtual-time';
import { createLocalSetup, DEPLOYER, type LocalSetup } from '../helpers/chain/local-setup';

const KEY = 'c0ffee00c0ffee00c0ffee00c0ffee00';
const SUBMISSION = 'eth_sendRawTransaction';

describe('a registry admin command, when calls fail', () => {
  let local: LocalSetup;
  let registry: TradeTrustTokenStandard;
  let proxy: RpcProxy;
  let url: string;
  let client: Chain;
  let source: RolesSource;
  let time: VirtualTime;
  const accounts: string[] = [];

  before(async () => {
    local = await createLocalSetup();
    time = VirtualTime.ofRequests();
    for (const index of [1, 2, 3]) accounts.push(await local.account(index));
    const signer = await local.client.getSigner(0);
    registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, signer);
    proxy = await startRpcProxy(local.node.url);
    url = `${proxy.url}/v3/${KEY}`;
    client = connectNode(proxy.url, {}, systemTime);
    stopLater('the client', () => client.close());
    source = {
      client,
      bulkClient: client,
      registry: await createRegistryFinder(client, local.registryAddress)(),
      contract: TradeTrustTokenStandard__factory.connect(local.registryAddress, runnerOf(client)),
    };
  });

  afterEach(async () => {
    proxy.answer(THROUGH);
    if (await registry.paused()) await (await registry.unpause('0x')).wait();
  });

  /**
   * Runs a command that reaches the node through the proxy. test/faults/secrets-of-commands.test.ts checks
   * that the output of commands has no secrets.
   */
  const run = (args: string[], settings: Record<string, string> = {}): Promise<CommandAnswer> =>
    askTdocInProcess(args, { ...local.settings, RPC_URL: url, ...settings }, { time });

  const nonce = (): Promise<number> => local.client.getTransactionCount(DEPLOYER);

  describe('that sends a transaction', () => {
    const failing = { code: -32000, message: `busy ${KEY}` };
    for (const [what, method, answer, code] of [
      ['the node does not answer', undefined, 'drop request', 'RPC_UNREACHABLE'],
      ['the gas cannot be estimated', 'eth_estimateGas', { error: failing }, 'NODE_FAILED'],
      ['the node rejects the transaction', SUBMISSION, { error: failing }, 'TRANSACTION_REJECTED'],
      ['the connection breaks at every submission', SUBMISSION, 'drop request', 'TRANSACTION_NOT_CONFIRMED'],
      ['a gateway fails', SUBMISSION, { status: 502, body: 'bad gateway' }, 'TRANSACTION_NOT_CONFIRMED'],
    ] as const)
      it(`exits with 2 and ${code} when ${what}`, async () => {
        proxy.answer((asked) => (method === undefined || asked === method ? answer : 'none'));
        const before = await nonce();
        const { code: exit, stdout, stderr } = await run(['pause', '--json', '--stack-traces']);
        expect({ exit, stdout }, stderr).to.deep.equal({ exit: 2, stdout: '' });
        expect(stderr).to.contain(code);
        expect(await nonce()).to.equal(before);
      });

    const submitted = (from: number): unknown[] =>
      proxy.requests.slice(from).flatMap(({ method, params }) => (method === SUBMISSION ? params : []));

    /** Does something before the first submission reaches the node. */
    const beforeSubmission = (act: () => Promise<unknown>): void => {
      let isFirst = true;
      proxy.answer(async (method, params, forward) => {
        const isHeld = method === SUBMISSION && isFirst;
        isFirst &&= !isHeld;
        if (isHeld) await act();
        return THROUGH(method, params, forward);
      });
    };

    it('sends the same bytes again while it is unknown whether the node has them', async () => {
      let left = 3;
      proxy.answer((method) => (method === SUBMISSION && left-- > 0 ? 'drop request' : 'none'));
      const from = proxy.requests.length;
      const { code, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(0);
      expect(submitted(from)).to.have.length(4);
      expect(new Set(submitted(from)).size).to.equal(1);
    });

    it('submits once when the answer is lost but the node has the transaction', async () => {
      proxy.answer((method) => (method === SUBMISSION ? 'drop answer' : 'none'));
      const from = proxy.requests.length;
      const { code, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(0);
      expect(submitted(from)).to.have.length(1);
    });

    it('signs again when another transaction used the nonce meanwhile', async () => {
      const signer = await local.client.getSigner(0);
      beforeSubmission(async () => (await signer.sendTransaction({ to: DEPLOYER })).wait());
      const from = proxy.requests.length;
      const { code, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(0);
      expect(new Set(submitted(from)).size).to.equal(2);
    });

    it('asks for the receipt again when the node does not answer', async () => {
      let left = 5;
      proxy.answer((method) =>
        method === 'eth_getTransactionReceipt' && left-- > 0 ? 'drop request' : 'none',
      );
      const { code, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(0);
      expect(left).to.be.below(0);
    });

    it('waits for the block while the node gives a receipt of a transaction that is not mined', async () => {
      let left = 2;
      const pending = { result: { blockHash: null, blockNumber: null, status: null, logs: [] } };
      proxy.answer((method) => (method === 'eth_getTransactionReceipt' && left-- > 0 ? pending : 'none'));
      const { code, stdout, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(0);
      expect(stdout).to.contain(`block ${await local.client.getBlockNumber()}`);
    });

    it('reports a revert when another admin was faster', async () => {
      const other = registry.connect(await local.client.getSigner(1));
      beforeSubmission(async () => (await other.pause('0x')).wait());
      await (await registry.grantRole(ADMIN_ROLE, accounts[0]!)).wait();
      const { code, stderr } = await run(['pause']);
      await (await registry.revokeRole(ADMIN_ROLE, accounts[0]!)).wait();
      expect(code, stderr).to.equal(2);
      expect(stderr).to.contain('TRANSACTION_REVERTED');
    });

    it('names the transaction when its effect cannot be read', async () => {
      let isSent = false;
      proxy.answer((method) => {
        isSent ||= method === SUBMISSION;
        return isSent && method === 'eth_call' ? { error: { code: -32000, message: 'gone' } } : 'none';
      });
      const { code, stdout, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(2);
      const [, hash = ''] = /^sent +(0x[0-9a-f]{64})$/m.exec(stdout) ?? [];
      expect(stderr).to.contain('EFFECT_UNCONFIRMED').and.to.contain(hash);
      expect(await registry.paused()).to.equal(true);
    });

    it('reports an unconfirmed effect when the registry does not show it', async () => {
      const paused = registry.interface.encodeFunctionData('paused');
      proxy.answer((method, [call]) => {
        const isPaused = method === 'eth_call' && (call as { data?: string }).data === paused;
        return isPaused ? { result: `0x${'0'.repeat(64)}` } : 'none';
      });
      const { code, stderr } = await run(['pause']);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.contain('EFFECT_UNCONFIRMED').and.to.contain('the registry is not paused');
    });

    it('refuses to run without a wallet', async () => {
      const { code, stderr } = await run(['pause'], { WALLET_PRIVATE_KEY: '' });
      expect(code).to.equal(2);
      expect(stderr).to.contain('NOT_CONFIGURED').and.to.contain('WALLET_PRIVATE_KEY');
    });
  });

  describe('that reads roles', () => {
    before(async () => {
      const minter = await registry.MINTER_ROLE();
      for (const account of accounts) await (await registry.grantRole(minter, account)).wait();
      await (await registry.revokeRole(minter, accounts[1]!)).wait();
      await (await registry.grantRole(keccakOfText('AUDITOR_ROLE'), accounts[2]!)).wait();
    });

    it('asks for smaller ranges when the provider refuses wide ones', async () => {
      const expected = await readRoles(source, []);
      let refusals = 0;
      proxy.answer((method, params) => {
        if (method !== 'eth_getLogs') return 'none';
        const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string };
        if (Number(toBlock) - Number(fromBlock) < 3) return 'none';
        refusals++;
        return { error: { code: -32005, message: 'block range is too wide' } };
      });
      expect(await readRoles(source, [])).to.deep.equal(expected);
      expect(refusals).to.be.above(0);
    });

    it('fails when any missing log makes the history contradict the registry', async () => {
      const logs = await local.client.getLogs({ address: local.registryAddress, fromBlock: 0 });
      const topics = ['RoleGranted', 'RoleRevoked'].map(
        (name) => registry.interface.getEvent(name as 'RoleGranted').topicHash,
      );
      // A role that only one log names is left out: without that log, nothing contradicts the history.
      const ofRoles = logs.filter(
        ({ topics: [first = '', role] }) => topics.includes(first) && role !== keccakOfText('AUDITOR_ROLE'),
      );
      expect(ofRoles.length).to.be.at.least(4 + 4);
      for (const left of ofRoles) {
        leaveOut(left.transactionHash, left.index);
        const failure = await readRoles(source, [DEPLOYER, ...accounts]).then(
          () => 'was read',
          (error: unknown) => codeOf(error),
        );
        expect(failure, `log ${left.index} of block ${left.blockNumber}`).to.equal('ROLE_HISTORY_INCOMPLETE');
      }
    });

    it('names the role that administers another role, in the list and in a refusal', async () => {
      const auditors = keccakOfText('AUDITOR_ROLE');
      const accepter = await registry.ACCEPTER_ROLE();
      await (await registry.setRoleAdmin(accepter, auditors)).wait();
      const { adminOf } = await readRoles(source, []);
      expect([...adminOf]).to.deep.equal([[accepter, auditors]]);
      const { stdout } = await run(['role', 'list']);
      expect(stdout).to.contain(`The accepter role is granted and revoked by the ${auditors} role`);
      const refused = await run(['role', 'grant', '--role', 'accepter', '--account', accounts[0]!]);
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.contain(`The wallet ${DEPLOYER} has no ${auditors} role`);
      await (await registry.setRoleAdmin(accepter, ADMIN_ROLE)).wait();
    });

    function leaveOut(transactionHash: string, index: number): void {
      proxy.answer(async (method, _params, forward) => {
        const answer = await forward();
        if (method !== 'eth_getLogs' || !('result' in answer)) return answer;
        const logs = answer.result as { transactionHash: string; logIndex: string }[];
        const kept = logs.filter(
          (log) => log.transactionHash !== transactionHash || Number(log.logIndex) !== index,
        );
        return { result: kept };
      });
    }
  });
});
