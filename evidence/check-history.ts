import { afterEvent } from '../client/token-moves';
import { messageOf, ServiceError } from '../service/base/errors';
import { partyOf, type EscrowState } from '../service/registry/read-token-state';
import { endorsementsOf, type Endorsement, type Situation } from '../service/token/endorsement-chain';
import type { CheckedEvent } from './check-chain';
import { placeOf, type CheckedState } from './check-state';
import type { EvidenceFile, EvidenceState } from '../service/evidence/evidence-file';
import { contractsOf } from '../service/evidence/proven-state';
import { createStatements, THE_FILE, type Statement } from './statements';

/** One operation of the timeline, with the parties after it. */
export type CheckedOperation = Pick<Endorsement, 'operation' | 'remark' | 'after'> &
  Pick<CheckedEvent, 'timestamp' | 'sender' | 'isProven'>;

/**
 * Checks that the events lead from the mint, each from where the one before it ended, to each state in the
 * file. It cannot show that nothing else happened: operations that take each other back leave no trace.
 */
export function checkHistory(
  file: EvidenceFile,
  states: readonly CheckedState[],
  { events: all, areAll }: { events: readonly CheckedEvent[]; areAll: boolean },
): { operations: CheckedOperation[]; statements: Statement[] } {
  const { made, proven, claimed, refuted } = createStatements('history');
  const events = all.filter(({ tokenId }) => tokenId !== undefined);
  const given = [...new Set(events.map(({ blockHash }) => blockHash))];
  const areProven = events.every((event) => event.isProven);
  const count = `The ${events.length} events of the token`;
  const says = `${count} lead from its mint, each from where the one before it ended.`;
  const nothingElse = 'Nothing else happened to the token up to the last block listed.';
  const followed = areAll ? follow(file, events) : 'the events listed are not those of the receipts';
  if (typeof followed === 'string') {
    refuted(says, followed);
    refuted(nothingElse, followed, { isMinor: true });
    return { operations: [], statements: made };
  }
  if (areProven) proven(says, 'the values in the events', { given });
  else claimed(says, 'not all of the events are proven');
  let contradiction: string | undefined;
  for (const { state, block, isProven } of states) {
    const difference = differenceOf(file, state, followed.endAt(block.block.number));
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

/** The parties that a rejection gives the roles back to. */
type Previous = Pick<EscrowState, 'previousBeneficiary' | 'previousHolder'>;

/** Follows the events from the mint. A text is the reason why they are not one chain. */
function follow(
  file: EvidenceFile,
  events: readonly CheckedEvent[],
): { endAt: (block: number) => Situation & Previous; operations: CheckedOperation[] } | string {
  const { titleEscrow } = contractsOf(file);
  const strange = events.find(({ payload }) => (payload.escrowAddress ?? titleEscrow) !== titleEscrow);
  if (strange) return `${strange.type} names ${strange.payload.escrowAddress}, not the token's title escrow`;
  const end = events.reduce(after, UNMINTED);
  if (end.state === 'not minted') return 'there is no mint among them';
  try {
    const endorsements = endorsementsOf({ logs: events, isWhole: true }, end);
    const byTransaction = new Map(events.map((event) => [event.transactionHash, event]));
    const operations = endorsements.map(({ operation, after, remark, transactionHash }): CheckedOperation => {
      const { timestamp = 0, sender, isProven = false } = byTransaction.get(transactionHash) ?? {};
      return { operation, after, remark, timestamp, sender, isProven };
    });
    const endAt = (block: number): Situation & Previous => ({
      ...events.filter(({ blockNumber }) => blockNumber <= block).reduce(after, UNMINTED),
      ...endorsements.filter(({ blockNumber }) => blockNumber <= block).reduce(previousAfter, NOBODY),
    });
    return { endAt, operations };
  } catch (thrown) {
    if (!(thrown instanceof ServiceError)) throw thrown;
    return messageOf(thrown)
      .replace(thrown.remedy ?? '', '')
      .trim();
  }
}

function after(token: Situation, event: CheckedEvent): Situation {
  return afterEvent(token, event, partyOf);
}

const UNMINTED: Situation = {
  state: 'not minted',
  beneficiary: undefined,
  holder: undefined,
  nominee: undefined,
};

const NOBODY: Previous = { previousBeneficiary: undefined, previousHolder: undefined };

/** The previous parties that TitleEscrow keeps after an operation. */
function previousAfter(previous: Previous, { operation, before, after }: Endorsement): Previous {
  const { previousBeneficiary, previousHolder } = previous;
  const { beneficiary, holder } = before;
  const isOneOwner = beneficiary === holder;
  switch (operation) {
    case 'nominate':
      return { previousBeneficiary: undefined, previousHolder: isOneOwner ? undefined : previousHolder };
    case 'transferBeneficiary':
      return { previousBeneficiary: beneficiary, previousHolder: undefined };
    case 'transferHolder':
      return {
        previousBeneficiary: isOneOwner ? undefined : previousBeneficiary,
        previousHolder: holder,
      };
    case 'transferOwners':
      // Its second half transfers the holder, who may be the new beneficiary.
      return {
        previousBeneficiary: after.beneficiary === holder ? undefined : beneficiary,
        previousHolder: holder,
      };
    case 'rejectTransferBeneficiary':
      return { ...previous, previousBeneficiary: undefined };
    case 'rejectTransferHolder':
      return { ...previous, previousHolder: undefined };
    case 'rejectTransferOwners':
    case 'returnToIssuer':
      return NOBODY;
    default:
      return previous;
  }
}

/** How a state differs from the one that events lead to. */
function differenceOf(
  file: EvidenceFile,
  state: EvidenceState,
  end: Situation & Previous,
): string | undefined {
  const place = placeOf(file, state);
  if (place !== end.state)
    return `the token is ${place ?? 'elsewhere'} there, but ${end.state} after these events`;
  const roles = ['beneficiary', 'holder', 'nominee', 'previousBeneficiary', 'previousHolder'] as const;
  const role = roles.find((one) => partyOf(state[one]) !== end[one]);
  return role && `the ${role} is ${state[role]} there, but ${end[role] ?? 'nobody'} after these events`;
}
