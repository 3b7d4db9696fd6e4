import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import type { JsonRpcSigner } from 'ethers';
import { TradeTrustTokenStandard__factory, TitleEscrowFactory__factory } from '../../typechain-types';
import {
  BeaconEscrowFactory__factory,
  ObligationEscrowFactory__factory,
  ObligationEscrow__factory,
  ObligationRegistry__factory,
  SilentObligationEscrow__factory,
} from '../../typechain-types/factories/contracts/testing/ObligationRegistry.sol';
import minimal from '../fixtures/bill-of-lading-minimal.json';
import { EVENTS_OF_A_MINT, mintDirectly } from '../helpers/chain/direct-mint';
import { createLocalSetup, type LocalSetup } from '../helpers/chain/local-setup';
import { eventually } from '../helpers/eventually';
import { create } from '../helpers/processes/create-call';
import { healthOf } from '../helpers/processes/health-and-metrics';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { ADMIN_API_KEY, callApi } from '../helpers/processes/subscribed-service';
import { askTdocInProcess } from '../helpers/processes/tdoc-in-process';
import { startRecordingReceiver, type RecordingReceiver } from '../helpers/receiver/recording-receiver';

/** Registries that mint like version 5, with escrows of their own. */
const OTHERS = {
  'behind a beacon': [ObligationEscrow__factory, BeaconEscrowFactory__factory, 'at other addresses'],
  'with other events': [ObligationEscrow__factory, ObligationEscrowFactory__factory, 'no event Shred'],
  'with another interface': [
    SilentObligationEscrow__factory,
    ObligationEscrowFactory__factory,
    'another interface',
  ],
} as const;
type Kind = keyof typeof OTHERS;

async function makeOther(kind: Kind, signer: JsonRpcSigner): Promise<string> {
  const [Escrow, Factory] = OTHERS[kind];
  const factory = await new Factory(signer).deploy(await new Escrow(signer).deploy());
  return (await new ObligationRegistry__factory(signer).deploy(factory)).getAddress();
}

describe('a registry whose title escrows are not those of version 5', () => {
  let local: LocalSetup;
  let signer: JsonRpcSigner;
  let receiver: RecordingReceiver;
  let service: RunningService;
  let own: string;
  let settings: Record<string, string>;

  before(async () => {
    local = await createLocalSetup();
    signer = await local.client.getSigner(0);
    own = await makeOther('behind a beacon', signer);
    receiver = await startRecordingReceiver(local.publicKeyFile);
    const registries = [{ network: 'localhost', address: local.registryAddress }];
    writeFileSync(local.settings.SERVICE_CONFIG ?? '', JSON.stringify({ registries }), { mode: 0o600 });
    settings = { ...local.settings, TOKEN_REGISTRY_ADDRESS: own, WEBHOOK_URL: receiver.url, ADMIN_API_KEY };
    service = await startService(settings);
  });

  for (const [kind, [, , reason]] of Object.entries(OTHERS))
    it(`is not added, with escrows ${kind}`, async () => {
      const address = await makeOther(kind as Kind, signer);
      const answer = await callApi(service.url, 'POST', '/registries', { network: 31337, address });
      expect([answer.status, answer.code]).to.deep.equal([400, 'ESCROWS_UNSUPPORTED']);
      expect(answer.message)
        .to.contain(address)
        .and.contain(reason)
        .and.contain('Correct the address or the network.');
    });

  it('stops its feed alone: the service starts, and follows the other registries', async () => {
    await mintDirectly(local, await local.account(1));
    await eventually('the other registry is followed', () => receiver.deliveries.length >= EVENTS_OF_A_MINT);
    const { feeds } = await healthOf(service.url);
    const stateOf = (address: string) => feeds.find(({ registry }) => registry === address.toLowerCase());
    expect(stateOf(own)).to.include({ state: 'stopped', code: 'ESCROWS_UNSUPPORTED' });
    expect(stateOf(local.registryAddress)).to.include({ state: 'following' });
  });

  it('gets no documents, and its tokens cannot be read', async () => {
    const registry = TradeTrustTokenStandard__factory.connect(own, signer);
    const owner = await local.account(1);
    const before = await local.client.getTransactionCount(signer.address);
    const answer = await create(service.url, { ...minimal, owner, holder: owner });
    expect([answer.status, answer.errorCode]).to.deep.equal([500, 'ESCROWS_UNSUPPORTED']);
    expect(await local.client.getTransactionCount(signer.address)).to.equal(before);
    // It could: the registry mints.
    await (await registry.mint(owner, owner, 1n, '0x')).wait();
    const { code } = await callApi(service.url, 'GET', `/tokens/1?registry=${own}`);
    expect(code).to.equal('ESCROWS_UNSUPPORTED');
  });

  it('is a fault that tdoc check names, with the remedy', async () => {
    const { code, stdout } = await askTdocInProcess(['check'], settings);
    expect(code).to.equal(1);
    expect(stdout).to.match(
      new RegExp(`^fault +registry ${own}: .*title escrows.*not of version 5.*at other addresses`, 'm'),
    );
    expect(stdout).to.contain('`npx hardhat deploy` makes one');
  });

  it('is told from another build of version 5, which is followed, and which tdoc check notes', async () => {
    const address = await local.makeRegistry();
    const factory = await TradeTrustTokenStandard__factory.connect(address, signer).titleEscrowFactory();
    const escrow = await TitleEscrowFactory__factory.connect(factory, signer).implementation();
    const checked = async () =>
      (await askTdocInProcess(['check'], { ...settings, TOKEN_REGISTRY_ADDRESS: address })).stdout;
    const found = `${address}: its title escrows are those of version 5, of`;
    expect(await checked()).to.contain(`${found} the published build`);
    const code = await local.client.getCode(escrow);
    await local.client.send('hardhat_setCode', [escrow, `${code}fe`]);
    expect(await checked()).to.contain(`${found} another build`);
    const answer = await callApi(service.url, 'POST', '/registries', { network: 31337, address });
    expect(answer.status).to.equal(201);
    await local.client.send('hardhat_setCode', [escrow, code]);
  });
});
