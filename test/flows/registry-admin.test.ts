import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from '../helpers/processes/create-call';
import { askTdoc, type CommandAnswer } from '../helpers/processes/command-answer';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { mintDirectly, newTokenId } from '../helpers/chain/direct-mint';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { createLocalSetup, DEPLOYER, DEPLOYER_KEY, type LocalSetup } from '../helpers/chain/local-setup';

/** The published keys of the node's accounts 1 and 2, as DEPLOYER_KEY is of account 0. */
const OTHER_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';
const THIRD_KEY = '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a';
const OTHER = new Wallet(OTHER_KEY).address;
const THIRD = new Wallet(THIRD_KEY).address;
const REMARK = 'cargo delivered, 提单';

describe('registry admin commands', () => {
  let local: LocalSetup;
  let registry: TradeTrustTokenStandard;
  let service: RunningService;

  before(async () => {
    local = await createLocalSetup();
    registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    service = await startService(local.settings);
  });

  const issue = (): Promise<CreateAnswer> => create(service.url, { ...minimal, owner: OTHER, holder: OTHER });

  /**
   * Starts a command in a process, as a user does. This is slow: most commands run in this process.
   */
  const start = (args: string[]): Promise<CommandAnswer> => askTdoc(args, local.settings);
  const run = (args: string[], settings: Record<string, string> = {}): Promise<CommandAnswer> =>
    askTdocInProcess(args, { ...local.settings, ...settings });

  /** Expects that a command succeeded, and returns the object that it printed. */
  function objectOf({ code, stdout, stderr }: CommandAnswer): Record<string, unknown> {
    expect(code, stdout + stderr).to.equal(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  }
  const done = async (...args: string[]): Promise<Record<string, unknown>> =>
    objectOf(await run([...args, '--json']));

  /** Expects that a command is refused without a transaction, and returns its standard error. */
  async function refused(args: string[], key = DEPLOYER_KEY): Promise<string> {
    const { address } = new Wallet(key);
    const nonce = await local.client.getTransactionCount(address);
    const { code, stdout, stderr } = await run(args, { WALLET_PRIVATE_KEY: key });
    expect({ code, stdout: stdout.includes('sent     0x') }, stdout + stderr).to.deep.equal({
      code: 1,
      stdout: false,
    });
    expect(await local.client.getTransactionCount(address)).to.equal(nonce);
    return stderr;
  }

  /** Whether the registry lets the wallet OTHER mint. */
  const mayMint = async (): Promise<boolean> =>
    registry
      .connect(await local.client.getSigner(1))
      .mint.staticCall(OTHER, OTHER, newTokenId(), '0x')
      .then(
        () => true,
        () => false,
      );

  describe('roles', () => {
    it('let a wallet mint from the grant of the minter role until it is revoked', async () => {
      expect(await mayMint()).to.equal(false);
      const granted = await start(['role', 'grant', '--role', 'minter', '--account', OTHER]);
      expect(granted.code, granted.stderr).to.equal(0);
      expect(granted.stdout).to.match(/^sent +0x[0-9a-f]{64}$/m);
      expect(granted.stdout)
        .to.match(/^mined +block \d+$/m)
        .and.to.contain(`${OTHER} has the minter role.`);
      expect(await mayMint()).to.equal(true);

      const account = OTHER.toLowerCase();
      const revoke = ['role', 'revoke', '--role', 'minter', '--account', account, '--json'];
      const revoked = objectOf(await run(revoke));
      expect(revoked).to.deep.include({ outcome: 'done', account: OTHER, state: { hasRole: false } });
      const receipt = await local.client.getTransactionReceipt(String(revoked.transactionHash));
      expect(receipt).to.include({ status: 1, from: DEPLOYER, blockNumber: revoked.blockNumber });
      expect(await mayMint()).to.equal(false);
    });

    it('are not granted or revoked a second time', async () => {
      const nonce = await local.client.getTransactionCount(DEPLOYER);
      for (const [command, account, hasRole] of [
        ['grant', DEPLOYER, true],
        ['revoke', OTHER, false],
      ] as const) {
        const answer = await done('role', command, '--role', 'minter', '--account', account);
        expect(answer).to.deep.include({ outcome: 'nothing to do', state: { hasRole } });
        expect(answer).not.to.have.property('transactionHash');
      }
      expect(await local.client.getTransactionCount(DEPLOYER)).to.equal(nonce);
    });

    it('can only be granted by an admin; the refusal tells how to find one', async () => {
      const said = await refused(['role', 'grant', '--role', 'accepter', '--account', OTHER], OTHER_KEY);
      expect(said).to.contain('AccessControlUnauthorizedAccount').and.to.contain('REGISTRY_REFUSES');
      expect(said).to.contain(`The wallet ${OTHER} has no admin role`).and.to.contain('role list');
    });

    it('are listed as the registry has them', async () => {
      await done('role', 'grant', '--role', 'restorer', '--account', THIRD);
      const shown = await run(['role', 'list', '--role', 'restorer']);
      expect(shown.code, shown.stderr).to.equal(0);
      const lines = shown.stdout.trim().split('\n').slice(1);
      expect(lines.map((line) => line.split(/ +/).slice(1, 3))).to.deep.equal([
        ['restorer', DEPLOYER],
        ['restorer', THIRD],
      ]);
      expect(lines[0]).to.contain('(wallet of the settings)');
      expect(lines[1]).to.contain(`granted by ${DEPLOYER}`).and.not.to.contain('wallet of the settings');

      const none = await run(['role', 'list', '--account', OTHER, '--json']);
      expect(none.code, none.stderr).to.equal(1);
      expect(JSON.parse(none.stdout)).to.deep.include({ holders: [], roleAdmins: [] });
    });

    it('cannot be revoked from the last admin without --force', async () => {
      const said = await refused(['role', 'revoke', '--role', 'admin', '--account', DEPLOYER]);
      expect(said).to.contain('LAST_ADMIN').and.to.contain('--force');
      await done('role', 'grant', '--role', 'admin', '--account', OTHER);
      const own = await run(['role', 'revoke', '--role', 'admin', '--account', DEPLOYER]);
      expect(own.code, own.stderr).to.equal(0);
      expect(own.stdout).to.contain('Warning: this is your own wallet');
      // The other account is the last admin now, and gives the role back.
      const other = { WALLET_PRIVATE_KEY: OTHER_KEY };
      expect((await run(['role', 'grant', '--role', 'admin', '--account', DEPLOYER], other)).code).to.equal(
        0,
      );
      expect((await run(['role', 'revoke', '--role', 'admin', '--account', OTHER])).code).to.equal(0);
      expect(await refused(['role', 'revoke', '--role', 'admin', '--account', DEPLOYER])).to.contain(
        'LAST_ADMIN',
      );
      expect(await registry.hasRole(await registry.DEFAULT_ADMIN_ROLE(), OTHER)).to.equal(false);
    });
  });

  describe('the pause', () => {
    it('stops POST /create from minting until the registry is unpaused', async () => {
      expect(objectOf(await start(['pause', '--remark', 'fraud', '--json']))).to.deep.include({
        state: { isPaused: true },
        remark: `0x${Buffer.from('fraud').toString('hex')}`,
        isRemarkEncrypted: false,
      });
      expect((await issue()).status).to.equal(500);
      expect(JSON.stringify(service.log)).to.contain('EnforcedPause');
      const again = await run(['pause']);
      expect(again).to.include({ code: 0 });
      expect(again.stdout).to.contain('Nothing to do');

      const unpaused = await run(['unpause', '--remark', 'cleared']);
      expect(unpaused.code, unpaused.stderr).to.equal(0);
      expect(unpaused.stdout)
        .to.contain('everybody can read it')
        .and.to.contain('the registry is not paused.');
      expect((await issue()).status).to.equal(200);
    });

    it('needs the admin role, and prevents the burning of tokens', async () => {
      expect(await refused(['pause'], OTHER_KEY)).to.contain('has no admin role');
      const { tokenId, escrow } = await mintDirectly(local, OTHER);
      await (await (await local.escrowAs(1, escrow)).returnToIssuer('0x')).wait();
      await done('pause');
      const burn = ['burn', String(tokenId), '--yes'];
      const said = await refused(burn);
      // The same registry, named by options while the settings have another one.
      const place = `--registry ${local.registryAddress} --network localhost`;
      const { stdout, stderr } = await run([...burn, ...place.split(' '), '--json'], {
        TOKEN_REGISTRY_ADDRESS: OTHER,
      });
      await done('unpause');
      const hint = `ENV_FILE=${local.settings.ENV_FILE} npx tdoc …`;
      expect(said).to.contain('EnforcedPause').and.to.contain('`npx tdoc unpause`').and.to.contain(hint);
      const { remedy } = JSON.parse(stdout) as { remedy: string };
      expect(remedy).to.contain(`\`npx tdoc unpause ${place}\``);
      expect(stderr).to.contain(hint);
    });
  });

  describe('a token to burn or restore', () => {
    let file: string;
    let tokenId: bigint;
    let escrow: string;

    before(async () => {
      const { body, status } = await issue();
      expect(status).to.equal(200);
      file = join(local.folder, 'answer.json');
      writeFileSync(file, JSON.stringify(body));
      tokenId = BigInt(`0x${body.signedW3CDocument.credentialStatus.tokenId}`);
      escrow = await registry.ownerOf(tokenId);
    });

    const giveBack = async (): Promise<unknown> =>
      (await (await local.escrowAs(1, escrow)).returnToIssuer('0x')).wait();

    it('is neither burned nor restored while it is in its title escrow', async () => {
      for (const args of [
        ['burn', file, '--yes'],
        ['restore', file],
      ])
        expect(await refused(args))
          .to.contain('TokenNotReturnedToIssuer')
          .and.to.contain('must return it to the issuer first');
    });

    it('is restored with a remark that its credential decrypts', async () => {
      await giveBack();
      expect(await refused(['restore', file], OTHER_KEY)).to.contain(
        `The wallet ${OTHER} has no restorer role`,
      );
      const restored = await run(['restore', file, '--remark', REMARK]);
      expect(restored.code, restored.stderr).to.equal(0);
      expect(restored.stdout).to.contain('the token is in escrow').and.not.to.contain('everybody can read');
      expect((await run(['token', file])).stdout).to.contain(`restored: the issuer gave it back`);
      expect((await run(['decrypt-remark', file])).stdout).to.match(new RegExp(`restore +"${REMARK}"`));
    });

    it('is not burned without confirmation, without the role or with too long a remark', async () => {
      await giveBack();
      const asked = await start(['burn', String(tokenId)]);
      expect(asked.code, asked.stdout).to.equal(1);
      expect(asked.stderr).to.contain('CONFIRMATION_MISSING').and.to.contain('--yes');
      expect(await refused(['burn', file, '--yes'], OTHER_KEY)).to.contain('has no accepter role');
      const long = await refused(['burn', file, '--yes', '--remark', 'é'.repeat(61)]);
      expect(long).to.contain('RemarkLengthExceeded').and.to.contain('122 bytes');
    });

    it('is burned once, by its id, with a remark that the given credential decrypts', async () => {
      const key = ['--credential', file, '--remark', REMARK];
      const burned = objectOf(await run(['burn', String(tokenId), '--yes', ...key, '--json']));
      expect(burned).to.deep.include({ outcome: 'done', tokenId: String(tokenId), isRemarkEncrypted: true });
      expect(burned.state).to.include({ state: 'shredded' });
      expect(await registry.ownerOf(tokenId)).to.equal('0x000000000000000000000000000000000000dEaD');
      expect((await run(['token', file])).stdout)
        .to.contain('Now')
        .and.to.contain('shredded');
      expect((await run(['decrypt-remark', file])).stdout).to.match(new RegExp(`burn +"${REMARK}"`));
      for (const args of [
        ['burn', file, '--yes'],
        ['restore', file],
      ])
        expect(await refused(args)).to.contain('no operation is possible any more');
    });

    it('refuses a --credential that is redundant, or of another token or registry', async () => {
      const nonce = await local.client.getTransactionCount(DEPLOYER);
      const key = ['--remark', REMARK, '--credential', file];
      const other = ['--registry', OTHER];
      for (const args of [
        ['burn', String(newTokenId()), '--yes', ...key],
        ['burn', file, '--yes', ...key],
        ['pause', ...key, ...other],
      ]) {
        const { code, stderr } = await run(args);
        expect(code, args.join(' ')).to.equal(2);
        expect(stderr).to.contain('ARGUMENT_INVALID').and.to.contain('credential');
      }
      expect(await local.client.getTransactionCount(DEPLOYER)).to.equal(nonce);
    });

    it('is refused if it was never minted', async () => {
      expect(await refused(['burn', String(newTokenId()), '--yes'])).to.contain('TOKEN_NOT_MINTED');
      const { code, stdout } = await run(['restore', String(newTokenId()), '--json']);
      expect(code).to.equal(1);
      expect(JSON.parse(stdout)).to.include({ outcome: 'refused', code: 'TOKEN_NOT_MINTED' });
    });
  });

  // Must be the last test: it leaves the registry without an admin.
  describe('the last admin', () => {
    it('can be revoked with --force; then nobody can pause the registry', async () => {
      const forced = await done('role', 'revoke', '--role', 'admin', '--account', DEPLOYER, '--force');
      expect(forced).to.deep.include({ outcome: 'done', state: { hasRole: false } });
      expect((await run(['role', 'list', '--role', 'admin'])).code).to.equal(1);
      expect(await refused(['pause'])).to.contain('has no admin role');
    });
  });
});
