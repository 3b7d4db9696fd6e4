import { expect } from 'chai';
import { ZeroAddress } from 'ethers';
import type { CloudEvent } from '../../service/events/cloud-event';
import { TitleEscrow__factory, TradeTrustTokenStandard__factory } from '../../typechain-types';
import { expectedEvents } from '../helpers/chain/expected-events';
import { expectPromisesKept } from '../helpers/receiver/delivery-promises';
import { newState, type Engine } from '../helpers/database/engines';
import { eventually } from '../helpers/eventually';
import { OPERATIONS, randomLifecycles, type Operation } from '../helpers/chain/random-lifecycles';
import {
  startRecordingReceiver,
  type Delivery,
  type RecordingReceiver,
} from '../helpers/receiver/recording-receiver';
import { startService, type RunningService } from '../helpers/processes/running-service';
import { seededRandom } from '../helpers/seeded-random';
import type { TokenModel } from '../helpers/chain/token-model';
import { localSetupOfSuite } from '../helpers/chain/local-setup';

/** The share of a run that has happened when the service is started. */
const STARTED = { 'in the middle': 0.5, 'at the end': 1 };

const RUNS: [seed: number, started: keyof typeof STARTED, engine: Engine][] = [
  [1, 'in the middle', 'SQLite'],
  [2, 'at the end', 'PostgreSQL'],
];
const TOKENS = 20;
const OPERATIONS_OF_A_RUN = 160;
/** Ids that break when a number is too small or signed, or leading zeros are lost. */
const UNUSUAL_IDS = [0n, 1n, 2n ** 256n - 1n, 2n ** 255n, 2n ** 53n + 1n, 0xabcdefn, 2n ** 248n - 1n];

describe('deliveries of random token operations', () => {
  const sent = new Map<Operation, number>();
  const local = localSetupOfSuite();
  let receiver: RecordingReceiver;
  let starting: Promise<RunningService> | undefined;

  beforeEach(async () => {
    receiver = await startRecordingReceiver(local.publicKeyFile);
  });

  afterEach(async () => {
    await stopService();
    await receiver.close();
  });

  const stopService = async (): Promise<void> => {
    const service = await starting;
    starting = undefined;
    await service?.stop();
  };

  for (const [seed, started, engine] of RUNS) {
    it(`equal the logs of the chain: seed ${seed}, service started ${started}, ${engine}`, async function () {
      const state = await newState(engine);
      if (state === undefined) return this.skip();
      const random = seededRandom(seed);
      const unusual = UNUSUAL_IDS.filter((_, index) => index % RUNS.length === seed % RUNS.length);
      const ids = Array.from({ length: TOKENS }, (_, index) => unusual[index] ?? BigInt(random.hex(32)));
      const lives = await randomLifecycles(local, random, ids);
      const fromBlock = (await local.client.getBlockNumber()) + 1;
      const deliveries = await deliveredDuring(lives.run, started, {
        ...state.settings,
        START_BLOCK: String(fromBlock),
      });

      const expected = await expectedEvents(local.client, local.registryAddress, fromBlock);
      expectPromisesKept(deliveries, expected);
      expect(deliveries).to.have.length(expected.length);
      const delivered = deliveries.map(({ event }) => event);
      const minted = lives.tokens.filter(({ place }) => place !== 'unminted');
      for (const token of minted) await expectStateOnChain(token, delivered);
      for (const operation of OPERATIONS)
        sent.set(operation, (sent.get(operation) ?? 0) + lives.counts[operation]);
    });
  }

  it('cover every operation', () => {
    for (const operation of OPERATIONS) expect(sent.get(operation), operation).to.be.greaterThan(0);
  });

  /** Runs the operations, and returns what a subscriber gets. */
  async function deliveredDuring(
    operate: (operations: number) => Promise<void>,
    started: keyof typeof STARTED,
    settings: { START_BLOCK: string },
  ): Promise<readonly Delivery[]> {
    const missed = OPERATIONS_OF_A_RUN * STARTED[started];
    await operate(missed);
    // Without a wallet no signing threads start, which take a second of processor time.
    const own = { ...settings, WEBHOOK_URL: receiver.url, WALLET_PRIVATE_KEY: '' };
    starting = startService({ ...local.settings, ...own });
    await Promise.all([starting, operate(OPERATIONS_OF_A_RUN - missed)]);
    const fromBlock = Number(settings.START_BLOCK);
    const { length } = await expectedEvents(local.client, local.registryAddress, fromBlock);
    // The comparison in the test names missing events.
    await eventually('all events', () => receiver.deliveries.length >= length).catch(() => undefined);
    await stopService();
    return receiver.deliveries;
  }

  /** Expects the state that follows from the events to be that of the contracts. */
  async function expectStateOnChain(token: TokenModel, delivered: CloudEvent[]): Promise<void> {
    const known = { beneficiary: ZeroAddress, holder: ZeroAddress, nominee: ZeroAddress, owner: ZeroAddress };
    for (const { type, data } of delivered.filter(({ subject }) => subject === String(token.tokenId))) {
      const { toBeneficiary, toHolder, nominee, escrowAddress } = data.payload;
      const suffix = type.replace('com.service.etr.', '');
      if (suffix === 'beneficiary_transfer') known.beneficiary = String(toBeneficiary);
      if (suffix === 'holder_transfer') known.holder = String(toHolder);
      if (suffix === 'nomination') known.nominee = String(nominee);
      if (suffix === 'minted' || suffix === 'restored') known.owner = String(escrowAddress);
      if (suffix === 'surrendered') known.owner = data.registryAddress;
      if (suffix === 'burned') known.owner = '0x000000000000000000000000000000000000dead';
    }
    const registry = TradeTrustTokenStandard__factory.connect(local.registryAddress, local.client);
    const escrow = TitleEscrow__factory.connect(token.escrow, local.client);
    const [beneficiary, holder, nominee, owner] = await Promise.all([
      escrow.beneficiary(),
      escrow.holder(),
      escrow.nominee(),
      registry.ownerOf(token.tokenId),
    ]);
    const onChain = { beneficiary, holder, nominee, owner };
    for (const [name, address] of Object.entries(onChain))
      expect(known, `token ${token.tokenId}`).to.have.property(name, address.toLowerCase());
  }
});
