import { getAddress, keccak256, ZeroAddress } from 'ethers';
import { messageOf, ServiceError } from '../base/errors';
import { BURN_ADDRESS, type DecodedLog } from '../registry/decode-log';
import type { TokenState } from '../registry/read-token-state';
import { endorsementsOf, operationsOf, type Roles, type TokenOperation } from '../token/endorsement-chain';
import { timeOf, type CheckedBlock, type CheckedEvent } from './check-chain';
import type { EvidenceFile, EvidenceState } from './evidence-file';
import { contractsOf, isEscrowOf, provenMembers, readProvenState, type ProvenState } from './proven-state';
import {
  addressIn,
  implementationOf,
  maskedCodeHash,
  PUBLISHED_CODE,
  STATE_PARTIES,
} from './published-contracts';
import { createStatements, THE_FILE, type Statement } from './statements';

/** A state that a file has, with what its proof shows. */
export interface CheckedState {
  state: EvidenceState;
  block: CheckedBlock;
  proven: ProvenState | undefined;
  /** Whether the block's hash proves the parties. */
  isProven: boolean;
}

type Place = TokenState['state'];

/** Compares the states in the file with their proofs. */
export async function checkStates(
  file: EvidenceFile,
  blocks: readonly CheckedBlock[],
): Promise<{ states: CheckedState[]; statements: Statement[] }> {
  const { made, proven, claimed, refuted } = createStatements('state');
  const states: CheckedState[] = [];
  for (const state of file.states) {
    const block = blocks.find((one) => one.block.hash === state.blockHash);
    if (block === undefined) {
      refuted(
        `The state at the end of block ${state.blockHash}.`,
        'the block is not in the file, or is refuted',
      );
      continue;
    }
    const says = stateInWords(file, state, block);
    const given = [state.blockHash];
    if ('problem' in state.proof) {
      states.push({ state, block, proven: undefined, isProven: false });
      claimed(says, `${state.proof.problem}; ${THE_FILE}`);
      continue;
    }
    const read = await readProvenState(file, state.proof, block.header.stateRoot).catch(() => undefined);
    const members = read && provenMembers(read);
    const isSame = members && STATE_PARTIES.every((name) => members[name] === state[name]);
    if (!read || !members)
      refuted(says, 'the nodes of its proof do not lead from the state root to the values');
    else if (!isSame || members.isPaused !== state.isPaused) refuted(says, 'its proof has other values');
    else {
      states.push({ state, block, proven: read, isProven: block.isProven });
      if (block.isProven) proven(says, "the trie of the block's state has these values", { given });
      else claimed(says, THE_FILE);
    }
  }
  return { states, statements: made };
}

function stateInWords(file: EvidenceFile, state: EvidenceState, { block, header }: CheckedBlock): string {
  const parties = (['beneficiary', 'holder', 'nominee'] as const)
    .map((role) => `${role} ${state[role] === ZeroAddress ? 'nobody' : getAddress(state[role])}`)
    .join(', ');
  const earlier = [state.previousBeneficiary, state.previousHolder]
    .map((address) => (address === ZeroAddress ? 'nobody' : getAddress(address)))
    .join(' and ');
  const place = placeOf(file, state) ?? `owned by ${state.owner}`;
  return (
    `At the end of block ${block.number} (${timeOf(header.timestamp)}) the token was ${place}: ` +
    `${parties}; a rejection would give the roles back to ${earlier}; ` +
    `the registry was ${state.isPaused ? '' : 'not '}paused.`
  );
}

function placeOf(file: EvidenceFile, { owner }: EvidenceState): Exclude<Place, 'not minted'> | undefined {
  if (owner === contractsOf(file).titleEscrow) return 'in escrow';
  if (owner === file.registry) return 'returned to issuer';
  return owner === BURN_ADDRESS ? 'shredded' : undefined;
}

/** Checks that the contracts are those of the token, and that they run the code that TradeTrust publishes. */
export function checkContracts(
  file: EvidenceFile,
  states: readonly CheckedState[],
  events: readonly CheckedEvent[],
): Statement[] {
  const { made, proven, claimed, refuted } = createStatements('contracts');
  const { titleEscrow, registry, titleEscrowFactory, titleEscrowImplementation, registryImplementation } =
    contractsOf(file);
  const last = states.at(-1);
  const shown = last?.isProven ? last.proven : undefined;
  const given = last ? [last.block.block.hash] : [];
  const variables = shown?.variables ?? {};
  const says = `The token's title escrow is ${titleEscrow}: CREATE2 gives it for registry and token.`;
  const mint = events.find(({ type, payload }) => type === 'minted' && payload.escrowAddress === titleEscrow);
  const areNamed =
    variables.titleEscrowFactory !== undefined &&
    variables.titleEscrowImplementation !== undefined &&
    addressIn(variables.titleEscrowFactory) === titleEscrowFactory &&
    addressIn(variables.titleEscrowImplementation) === titleEscrowImplementation;
  if (shown && areNamed && isEscrowOf(shown, file))
    proven(
      says,
      'the storage of registry and factory names factory and implementation, the escrow names the token',
      { given },
    );
  else if (mint?.isProven)
    proven(says, 'the registry minted the token to it', { given: [mint.log.blockHash] });
  else claimed(says, THE_FILE);
  const codes: { name: string; address: string; expected: string }[] = [
    { name: 'registry', address: registryImplementation, expected: PUBLISHED_CODE.registry },
    {
      name: 'title escrow factory',
      address: titleEscrowFactory,
      expected: PUBLISHED_CODE.titleEscrowFactory,
    },
    { name: 'title escrow', address: titleEscrowImplementation, expected: PUBLISHED_CODE.titleEscrow },
  ];
  const codeOf = (address: string): string => file.codes.find((one) => one.address === address)?.code ?? '0x';
  const isShown = (address: string): boolean => shown?.codeHashOf(address) === keccak256(codeOf(address));
  for (const { name, address, expected } of codes) {
    const own = name === 'registry' ? registry : name === 'title escrow' ? titleEscrow : address;
    const rules =
      `The ${name} ${own} runs the code that TradeTrust publishes: ` + 'its rules allowed each event.';
    const isClone = own === address || implementationOf(codeOf(own)) === address;
    const isPublished = isClone && maskedCodeHash(codeOf(address)) === expected;
    const isContradicted = [own, address].some((one) => shown !== undefined && !isShown(one));
    if (isContradicted) refuted(rules, 'the state of the block has another code than the file');
    else if (!isPublished)
      claimed(rules, 'its code is not the published one: what it allows is not known here');
    else if (shown)
      proven(rules, 'the state of the block has this code; metadata is left out of account', { given });
    else
      claimed(rules, `the code in the file is the published one, but is not proven to be there; ${THE_FILE}`);
  }
  return made;
}

/** The token after some of its events. */
interface Folded extends Roles {
  place: Place;
  previousBeneficiary: string | undefined;
  previousHolder: string | undefined;
}

/** One operation of the timeline, with the parties after it. */
export interface CheckedOperation {
  operation: TokenOperation;
  timestamp: number;
  blockNumber: number;
  sender: string | undefined;
  /** `0x` and hex. */
  remark: string;
  after: Roles;
  isProven: boolean;
}

/**
 * Checks that the events lead from the mint, each from where the one before it ended, to each state in the
 * file. It cannot show that nothing else happened: operations that take each other back leave no trace.
 */
export function checkHistory(
  file: EvidenceFile,
  states: readonly CheckedState[],
  all: readonly CheckedEvent[],
): { operations: CheckedOperation[]; statements: Statement[] } {
  const { made, proven, claimed, refuted } = createStatements('history');
  const events = all.filter(({ tokenId }) => tokenId !== undefined);
  const given = [...new Set(events.map(({ log }) => log.blockHash))];
  const areProven = events.every((event) => event.isProven);
  const count = `The ${events.length} events of the token`;
  const says = `${count} lead from its mint, each from where the one before it ended.`;
  const nothingElse = 'Nothing else happened to the token up to the last block listed.';
  const followed =
    all.length < file.events.length ? 'some of the events listed are refuted' : unbroken(events);
  if (typeof followed === 'string') {
    refuted(says, followed);
    refuted(nothingElse, followed, { isMinor: true });
    return { operations: [], statements: made };
  }
  if (areProven) proven(says, 'the values in the events', { given });
  else claimed(says, 'not all of the events are proven');
  let contradiction: string | undefined;
  for (const { state, block, isProven } of states) {
    const until = events.filter(({ log }) => log.blockNumber <= block.block.number);
    const difference = differenceOf(file, state, unbroken(until));
    const leads = `The events up to block ${block.block.number} lead to the state at its end.`;
    if (difference !== undefined) {
      refuted(leads, difference);
      contradiction ??= difference;
    } else if (isProven && areProven)
      proven(leads, 'they end with the same parties', { given: [...given, state.blockHash] });
    else claimed(leads, 'they end with the same parties, but one or the other is not proven');
  }
  if (contradiction !== undefined) refuted(nothingElse, contradiction, { isMinor: true });
  else claimed(nothingElse, `${THE_FILE}. No file can prove this`, { isMinor: true });
  return { operations: followed.operations, statements: made };
}

/** Follows the events from the mint. A text is the reason why they are not one chain. */
function unbroken(events: readonly CheckedEvent[]): { end: Folded; operations: CheckedOperation[] } | string {
  try {
    const grouped = operationsOf(events);
    const end = grouped.reduce(afterOperation, UNMINTED);
    if (end.place === 'not minted') return 'there is no mint among them';
    const token = { ...end, state: end.place, titleEscrow: ZeroAddress, block: 0, isPaused: false };
    const endorsements = endorsementsOf({ logs: events, isWhole: true }, token);
    const operations = endorsements.map(
      ({ operation, after, remark, blockNumber }, index): CheckedOperation => {
        const own = (grouped[index]?.logs ?? []) as CheckedEvent[];
        const { timestamp = 0, sender } = own[0] ?? {};
        return {
          operation,
          after,
          remark,
          blockNumber,
          timestamp,
          sender,
          isProven: own.every((one) => one.isProven),
        };
      },
    );
    return { end, operations };
  } catch (thrown) {
    const { remedy = '' } = thrown instanceof ServiceError ? thrown : {};
    return messageOf(thrown).replace(remedy, '').trim();
  }
}

const UNMINTED: Folded = {
  place: 'not minted',
  beneficiary: undefined,
  holder: undefined,
  nominee: undefined,
  previousBeneficiary: undefined,
  previousHolder: undefined,
};

/** The token after an operation, as TitleEscrow has it. */
function afterOperation(
  before: Folded,
  { operation, logs }: ReturnType<typeof operationsOf>[number],
): Folded {
  const after = logs.reduce(afterLog, before);
  const { beneficiary, holder, previousBeneficiary, previousHolder } = before;
  const isOneOwner = beneficiary === holder;
  switch (operation) {
    case 'nominate':
      return {
        ...after,
        previousBeneficiary: undefined,
        previousHolder: isOneOwner ? undefined : previousHolder,
      };
    case 'transferBeneficiary':
      return { ...after, previousBeneficiary: beneficiary, previousHolder: undefined };
    case 'transferHolder':
      return {
        ...after,
        previousBeneficiary: isOneOwner ? undefined : previousBeneficiary,
        previousHolder: holder,
      };
    case 'transferOwners': {
      // The second half is a transfer of the holder by somebody who may be the beneficiary by then.
      const isOneOwnerThen = after.beneficiary === holder;
      return {
        ...after,
        previousBeneficiary: isOneOwnerThen ? undefined : beneficiary,
        previousHolder: holder,
      };
    }
    case 'rejectTransferBeneficiary':
      return { ...after, previousBeneficiary: undefined };
    case 'rejectTransferHolder':
      return { ...after, previousHolder: undefined };
    case 'rejectTransferOwners':
    case 'returnToIssuer':
      return { ...after, previousBeneficiary: undefined, previousHolder: undefined };
    default:
      return after;
  }
}

function afterLog(before: Folded, { type, payload }: DecodedLog): Folded {
  const place = PLACE_AFTER[type];
  if (place !== undefined) return { ...before, place };
  const [role, member] = ROLE_AFTER[type] ?? [];
  return role && member ? { ...before, [role]: someone(String(payload[member])) } : before;
}

const PLACE_AFTER: Partial<Record<DecodedLog['type'], Place>> = {
  minted: 'in escrow',
  surrendered: 'returned to issuer',
  restored: 'in escrow',
  burned: 'shredded',
};

const ROLE_AFTER: Partial<Record<DecodedLog['type'], readonly [keyof Roles, string]>> = {
  nomination: ['nominee', 'nominee'],
  beneficiary_transfer: ['beneficiary', 'toBeneficiary'],
  holder_transfer: ['holder', 'toHolder'],
};

function someone(address: string): string | undefined {
  return address === ZeroAddress ? undefined : getAddress(address);
}

/** How a state differs from the one that events lead to. */
function differenceOf(
  file: EvidenceFile,
  state: EvidenceState,
  led: ReturnType<typeof unbroken>,
): string | undefined {
  if (typeof led === 'string') return led;
  const { end } = led;
  const place = placeOf(file, state);
  if (place !== end.place)
    return `the token is ${place ?? 'elsewhere'} there, but ${end.place} after these events`;
  const roles = ['beneficiary', 'holder', 'nominee', 'previousBeneficiary', 'previousHolder'] as const;
  const role = roles.find((one) => someone(state[one]) !== end[one]);
  return role && `the ${role} is ${state[role]} there, but ${end[role] ?? 'nobody'} after these events`;
}
