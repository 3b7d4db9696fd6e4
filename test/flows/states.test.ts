import type { HardhatEthersSigner } from '@nomicfoundation/hardhat-ethers/signers';
import { takeSnapshot, type SnapshotRestorer } from '@nomicfoundation/hardhat-toolbox/network-helpers';
import { expect } from 'chai';
import {
  ZeroAddress,
  hexlify,
  type BlockTag,
  type JsonRpcProvider,
  type TransactionReceipt,
  type TransactionRequest,
} from 'ethers';
import { installContracts } from '../../devnet/local-chain';
import type { Chain } from '../../service/chain/chain';
import { possibleOperations } from '../../service/token/possible-operations';
import { readTokenState } from '../../service/registry/read-token-state';
import { decodeLog } from '../../service/registry/decode-log';
import type { RegistryContracts } from '../../service/registry/registry-contracts';
import {
  TitleEscrow__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
  type TitleEscrowFactory,
  type TradeTrustTokenStandard,
} from '../../typechain-types';
import { chainOf } from '../helpers/chain/fake-nodes';
import { hre } from '../helpers/chain/in-process-chain';
import { callOf, callOfPause } from '../helpers/chain/random-lifecycles';
import {
  apply,
  TOKEN_OPERATIONS,
  unmintedToken,
  type TokenModel,
  type TokenOperation,
} from '../helpers/chain/token-model';
import { quoted } from '../helpers/pages/markdown';
import {
  actorOf,
  diagramArrows,
  exploreStates,
  instancesOf,
  isAbout,
  isOfRow,
  LOG_ROWS,
  mayNameNominee,
  namedIn,
  oneOfEach,
  OPERATION_ROWS,
  partOf,
  PAUSE_REFUSALS,
  PAUSE_ROWS,
  REFUSAL_ROWS,
  stateName,
  STATES,
  type NamedCall,
  type OperationRow,
  type Reached,
  type RefusalRow,
} from '../helpers/pages/states-document';

const ESCROW = TitleEscrow__factory.createInterface();
const FACTORY = TitleEscrowFactory__factory.createInterface();
const REMARK = '0xc0ffee';
const LONG_REMARK = hexlify(new Uint8Array(121));

describe('docs/states.md', function () {
  let snapshot: SnapshotRestorer | undefined;
  let registry: TradeTrustTokenStandard;
  let factory: TitleEscrowFactory;
  let contracts: RegistryContracts;
  let client: Chain;
  let persons: string[];
  /** Keyed by address, or by the role of the registry that is the account's only one. */
  let signers: Map<string, HardhatEthersSigner>;
  let reached: Reached[];
  let lastId = 0n;

  before(async () => {
    snapshot = await takeSnapshot();
    await deploy();
    const { provider } = hre.ethers;
    contracts = {
      registry: (await registry.getAddress()).toLowerCase(),
      titleEscrowFactory: (await factory.getAddress()).toLowerCase(),
      titleEscrowImplementation: (await factory.implementation()).toLowerCase(),
    };
    client = chainOf((method, params) => {
      if (method !== 'eth_call') return provider.send(method, [...params]);
      const [call, blockTag] = params as [TransactionRequest, BlockTag];
      return provider.call({ ...call, blockTag });
    });
    reached = exploreStates(persons);
  });

  after(() => snapshot?.restore());

  /** Deploys the contracts, and gives each role an account of its own. */
  async function deploy(): Promise<void> {
    const [admin, minter, restorer, accepter, ...others] = await hre.ethers.getSigners();
    if (!admin || !minter || !restorer || !accepter) throw new Error('the node has too few accounts');
    const makeRegistry = await installContracts(hre.ethers.provider as unknown as JsonRpcProvider);
    registry = TradeTrustTokenStandard__factory.connect(await makeRegistry(), admin);
    factory = TitleEscrowFactory__factory.connect(await registry.titleEscrowFactory(), admin);
    for (const [role, { address }] of [
      [await registry.MINTER_ROLE(), minter],
      [await registry.RESTORER_ROLE(), restorer],
      [await registry.ACCEPTER_ROLE(), accepter],
    ] as const) {
      await registry.grantRole(role, address);
      await registry.renounceRole(role, admin.address);
    }
    const people = others.slice(0, 5);
    persons = people.map(({ address }) => address);
    const named = people.map((person): [string, HardhatEthersSigner] => [person.address, person]);
    signers = new Map([...named, ...Object.entries({ admin, minter, restorer, accepter })]);
  }

  describe('operations', () => {
    for (const row of OPERATION_ROWS) {
      it(row.text, async () => {
        const instances = instancesOf(row, reached);
        expect(instances, 'states that it is about').not.to.be.empty;
        for (const instance of instances) {
          await withToken(instance, async (token) => {
            await expectRefusedToOthers(row, token);
            await expectDone(row, token);
          });
          if (mayNameNominee(row, instance.token))
            await withToken(instance, (token) => expectDone(row, token, token.nominee));
        }
      });
    }
  });

  describe('refusals', () => {
    for (const row of REFUSAL_ROWS) {
      it(row.text, async () => {
        const instances = instancesOf(row, reached);
        expect(instances, 'states that it is about').not.to.be.empty;
        for (const instance of instances) {
          await withToken(instance, async (token) => {
            for (const actor of actorsOf(row, token))
              await expectRefused(attempt(token, namedIn(row, token, persons), actor), row.error);
          });
        }
      });
    }
  });

  it('covers every operation in every state, except title escrow calls before the mint', () => {
    for (const operation of TOKEN_OPERATIONS) {
      for (const state of STATES) {
        const isOfEscrow = !['mint', 'restore', 'burn'].includes(operation);
        if (isOfEscrow && state === 'not minted') continue;
        const rows = [...OPERATION_ROWS, ...REFUSAL_ROWS].filter(
          (row) => row.operation === operation && row.states.includes(state),
        );
        expect(rows, `${operation} in ${state}`).not.to.be.empty;
      }
    }
  });

  it('has a row for every call that the contracts accept, whichever accounts it names', async () => {
    for (const instance of minted()) {
      await withToken(instance, async (token) => {
        const roles: unknown[] = Object.values(token);
        const strangers = persons.filter((person) => !roles.includes(person));
        // One account without a role stands for all of them.
        const names = [...persons.filter((person) => !strangers.slice(1).includes(person)), ZeroAddress];
        const pairs = names.flatMap((first) => names.map((second) => ({ first, second })));
        for (const operation of TOKEN_OPERATIONS) {
          const namings = pairs.filter(
            ({ first, second }) =>
              operation === 'transferOwners' ||
              (operation === 'transferHolder' ? first : second) === ZeroAddress,
          );
          for (const naming of namings) {
            const call = { operation, ...naming };
            for (const actor of actorsFor(operation, token)) {
              if (!(await attempt(token, call, actor).then(Boolean, () => false))) continue;
              const rows = OPERATION_ROWS.filter((row) => isOfRow(row, token, call, persons));
              expect(rows.length, `${stateName(token)}: ${JSON.stringify(call)}`).to.be.greaterThan(0);
              expect(rows.map(({ by }) => actorOf(by, token))).to.include(actor);
            }
          }
        }
      });
    }
  });

  it('has a diagram of the same operations', () => {
    const arrows = OPERATION_ROWS.flatMap(({ operation, states, leadsTo }) =>
      states.map((state) => `${state} → ${leadsTo}: ${operation}`),
    );
    expect(diagramArrows().sort()).to.deep.equal([...new Set(arrows)].sort());
  });

  it('lists the operations that the token command shows as possible next', async () => {
    expect(possibleOperations({ state: 'not minted', block: 0, isPaused: false })).to.deep.equal([
      { operation: 'mint', by: 'minter' },
    ]);
    for (const instance of minted()) {
      await withToken(instance, async (token) => {
        const shown = possibleOperations(await readTokenState(client, contracts, token.tokenId));
        const rows = OPERATION_ROWS.filter((row) => isAbout(row, token));
        const expected = rows.map(({ operation, by }) => `${operation} by ${actorOf(by, token)}`);
        const actual = shown.map(({ operation, by }) => `${operation} by ${by}`);
        expect(actual.sort(), stateName(token)).to.deep.equal([...new Set(expected)].sort());
      });
    }
  });

  describe('while the registry is paused', () => {
    for (const cells of PAUSE_ROWS) {
      const [call = '', by = '', from = '', to = '', logs = '', others = ''] = cells;
      const name = nameOf(call);
      it(cells.join(' | '), () =>
        inSnapshot(async () => {
          await setPaused(from === 'paused');
          for (const other of [...persons, 'minter', 'restorer', 'accepter'])
            await expectRefused(attemptPause(name, other), quoted(others)[0]);
          const receipt = await send(pauseCall(name), by);
          expect(namesOf(receipt)).to.deep.equal(quoted(logs));
          expectAnnounced(receipt, name);
          expect(await registry.paused()).to.equal(to === 'paused');
        }),
      );
    }

    it('only unpause is possible next, and nothing for a shredded token', async () => {
      const unpause = [{ operation: 'unpause', by: 'admin' }];
      const unminted = { state: 'not minted', block: 0, isPaused: true } as const;
      expect(possibleOperations(unminted)).to.deep.equal(unpause);
      for (const instance of minted()) {
        await withToken(instance, async (token) => {
          await setPaused(true);
          const state = await readTokenState(client, contracts, token.tokenId);
          const expected = token.place === 'burned' ? [] : unpause;
          expect(possibleOperations(state), stateName(token)).to.deep.equal(expected);
        });
      }
    });

    for (const cells of PAUSE_REFUSALS) {
      const [call = '', by = '', from = '', error = ''] = cells;
      const name = nameOf(call);
      it(cells.join(' | '), async () => {
        if (by !== 'anybody')
          return inSnapshot(async () => {
            await setPaused(from === 'paused');
            await expectRefused(attemptPause(name, by), quoted(error)[0]);
          });
        const operation = TOKEN_OPERATIONS.find((known) => known === name);
        if (operation === undefined) throw new Error(`there is no operation ${name}`);
        for (const instance of minted()) {
          await withToken(instance, async (token) => {
            await setPaused(true);
            for (const actor of signers.keys()) {
              const [first = '', second = ''] = persons;
              const call = { operation, first, second };
              await expectRefused(attempt(token, call, actor), quoted(error)[0]);
            }
          });
        }
      });
    }
  });

  const minted = (): Reached[] => oneOfEach(reached).filter(({ token }) => token.place !== 'unminted');

  type Transaction = ReturnType<typeof callOfPause>;

  function transactionOf(token: TokenModel, call: NamedCall, remark = REMARK): Transaction {
    return callOf(contracts.registry, token, call.operation, call, remark);
  }

  function signerOf(by: string): HardhatEthersSigner {
    const signer = signers.get(by);
    if (signer === undefined) throw new Error(`nobody is called "${by}"`);
    return signer;
  }

  async function send({ to, data }: Transaction, by: string): Promise<TransactionReceipt> {
    const sent = await signerOf(by).sendTransaction({ to, data });
    return (await sent.wait()) as TransactionReceipt;
  }

  /** Simulates the transaction; rejects with its revert. */
  async function simulate({ to, data }: Transaction, by: string): Promise<string> {
    // Far less work than `call` of a signer, and there are thousands.
    const { address: from } = signerOf(by);
    const { stackTraceLimit } = Error;
    // Hardhat makes a stack trace of Solidity for each revert, which takes longer than the call.
    Error.stackTraceLimit = 0;
    try {
      return (await hre.network.provider.send('eth_call', [{ from, to, data }])) as string;
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }

  function attempt(token: TokenModel, call: NamedCall, by: string, remark?: string): Promise<string> {
    return simulate(transactionOf(token, call, remark), by);
  }

  /** Runs `action`, and takes the chain back afterwards. */
  async function inSnapshot(action: () => Promise<void>): Promise<void> {
    const before = await takeSnapshot();
    await action().finally(() => before.restore());
  }

  /** `error`: the name of an error of the registry or its title escrows; undefined: no reason is given. */
  async function expectRefused(attempted: Promise<string>, error: string | undefined): Promise<void> {
    if (error === undefined) return expect(attempted).to.be.revertedWithoutReason();
    const contract = registry.interface.getError(error) === null ? { interface: ESCROW } : registry;
    await expect(attempted).to.be.revertedWithCustomError(contract, error);
  }

  /** The accounts that may be allowed to. The tests of the rows try all others. */
  function actorsFor(operation: TokenOperation, { beneficiary, holder }: TokenModel): Set<string> {
    if (operation === 'mint') return new Set(['minter']);
    if (operation === 'restore') return new Set(['restorer']);
    if (operation === 'burn') return new Set(['accepter']);
    return new Set([beneficiary, holder].filter((person) => person !== ZeroAddress));
  }

  /** A token that is in this state. It is made once: its transactions cost most of the time of a test. */
  const made = new Map<Reached, TokenModel>();
  async function tokenOf(wanted: Reached): Promise<TokenModel> {
    const known = made.get(wanted);
    if (known) return known;
    const tokenId = ++lastId;
    const token = unmintedToken(tokenId, await factory.getEscrowAddress(contracts.registry, tokenId));
    for (const { call, by } of wanted.path) {
      await send(transactionOf(token, call), by);
      apply(token, call.operation, call);
    }
    made.set(wanted, token);
    return token;
  }

  /** Acts on a token that is in this state, and takes the chain back afterwards. */
  async function withToken(wanted: Reached, action: (token: TokenModel) => Promise<void>): Promise<void> {
    const token = await tokenOf(wanted);
    await inSnapshot(() => action({ ...token }));
  }

  async function expectDone(row: OperationRow, token: TokenModel, x?: string): Promise<void> {
    const call = namedIn(row, token, persons, x);
    const actor = actorOf(row.by, token);
    await expectRefused(attempt(token, call, actor, LONG_REMARK), 'RemarkLengthExceeded');
    const before = { ...token };
    const receipt = await send(transactionOf(token, call), actor);
    apply(token, call.operation, call);
    expect(namesOf(receipt), 'logs').to.deep.equal(row.logs);
    expectAnnounced(receipt, row.operation);
    expect(stateName(token), 'the state that the model says').to.equal(row.leadsTo);
    await expectChainIs(token);
    const { previousBeneficiary, previousHolder } = token;
    expect(previousBeneficiary).to.equal(remembered(row.previousBeneficiary, before, 'beneficiary'));
    expect(previousHolder).to.equal(remembered(row.previousHolder, before, 'holder'));
  }

  function remembered(word: string, before: TokenModel, role: 'beneficiary' | 'holder'): string | undefined {
    switch (word) {
      case 'set':
        return before[role];
      case 'cleared':
        return undefined;
      case 'kept':
        return partOf(`previous ${role}`, before);
      default:
        throw new Error(`docs/states.md: "${word}" is neither set, cleared nor kept`);
    }
  }

  async function expectChainIs(token: TokenModel): Promise<void> {
    const state = await readTokenState(client, contracts, token.tokenId);
    if (state.state === 'not minted') throw new Error('it is not minted');
    const places = {
      'in escrow': 'with its escrow',
      'returned to issuer': 'with the registry',
      shredded: 'burned',
    };
    const { nominee, previousBeneficiary, previousHolder } = state;
    const { beneficiary = ZeroAddress, holder = ZeroAddress } = state;
    const place = places[state.state];
    const read = { place, beneficiary, holder, nominee, previousBeneficiary, previousHolder };
    expect(token).to.deep.include(read);
  }

  async function expectRefusedToOthers(row: OperationRow, token: TokenModel): Promise<void> {
    const actor = actorOf(row.by, token);
    for (const other of signers.keys()) {
      if (other === actor) continue;
      await expectRefused(attempt(token, namedIn(row, token, persons), other), row.errorForOthers);
    }
  }

  /**
   * Expects each log of a receipt to have the event type and the contract that the table of the page says.
   */
  function expectAnnounced({ logs }: TransactionReceipt, operation: string): void {
    for (const log of logs) {
      const name = nameOfLog(log);
      const row = LOG_ROWS.find(
        (one) => one.log === name && (one.operation === undefined || one.operation === operation),
      );
      expect(emitterOf(log.address), name).to.equal(row?.emitter);
      const read = { ...log, address: log.address.toLowerCase(), topics: [...log.topics] };
      expect(decodeLog(read, contracts)?.type, name).to.equal(row?.type);
    }
  }

  function emitterOf(address: string): string {
    if (address.toLowerCase() === contracts.registry) return 'registry';
    return address.toLowerCase() === contracts.titleEscrowFactory ? 'factory' : 'escrow';
  }

  function namesOf({ logs }: TransactionReceipt): string[] {
    return logs.map(nameOfLog);
  }

  function nameOfLog(log: { topics: readonly string[]; data: string }): string {
    const known = [ESCROW, FACTORY, registry.interface];
    return known.map((one) => one.parseLog(log)?.name).find((name) => name !== undefined) ?? 'unknown';
  }

  function actorsOf(row: RefusalRow, token: TokenModel): string[] {
    return row.by === 'anybody' ? [...signers.keys()] : [actorOf(row.by, token)];
  }

  function pauseCall(name: string): Transaction {
    if (name !== 'pause' && name !== 'unpause') throw new Error(`"${name}" is no pause`);
    return callOfPause(contracts.registry, name, '0x');
  }

  const attemptPause = (name: string, by: string): Promise<string> => simulate(pauseCall(name), by);

  async function setPaused(wanted: boolean): Promise<void> {
    if ((await registry.paused()) !== wanted) await send(pauseCall('pause'), 'admin');
  }

  function nameOf(call: string): string {
    return (quoted(call)[0] ?? '').replace(/\(.*/, '');
  }
});
