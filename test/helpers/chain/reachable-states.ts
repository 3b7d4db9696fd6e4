import { ZeroAddress } from 'ethers';
import {
  OPERATION_ROWS,
  isAbout,
  partOf,
  stateName,
  type OperationRow,
  type RefusalRow,
  type WrittenCall,
} from '../pages/states-document';
import { apply, unmintedToken, type Named, type TokenModel, type TokenOperation } from './token-model';

/** An operation with the accounts that it names. */
export interface Call extends Named {
  operation: TokenOperation;
}

/** A state of a token with all that the contracts store, and a path to it. `by`: see `actorOf`. */
export interface Reached {
  token: TokenModel;
  path: { call: Call; by: string }[];
}

/** Every state is reached with fewer operations. */
const LONGEST_PATH = 6;
/** In how many situations a row is tried, for each of its states. */
const INSTANCES = 3;
const REGISTRY_ROLES = ['admin', 'minter', 'restorer', 'accepter'];

/**
 * Every situation that the operations of the page lead to, according to the model of token-model.ts.
 */
export function exploreStates(persons: readonly string[]): Reached[] {
  const start: Reached = { token: unmintedToken(0n, ''), path: [] };
  const found = new Map([[keyOf(start.token), start]]);
  for (const { token, path } of found.values()) {
    if (path.length === LONGEST_PATH) continue;
    for (const row of OPERATION_ROWS.filter((candidate) => isAbout(candidate, token))) {
      const call = callOf(row, token, persons);
      const next = { ...token };
      apply(next, call.operation, call);
      const step = { call, by: actorOf(row.by, token) };
      if (!found.has(keyOf(next))) found.set(keyOf(next), { token: next, path: [...path, step] });
    }
  }
  return [...found.values()];
}

function keyOf({
  place,
  beneficiary,
  holder,
  nominee,
  previousBeneficiary,
  previousHolder,
}: TokenModel): string {
  return [place, beneficiary, holder, nominee, previousBeneficiary, previousHolder].join();
}

/** Some situations of a row, with different previous beneficiaries and holders. */
export function instancesOf(row: OperationRow | RefusalRow, reached: readonly Reached[]): Reached[] {
  return oneOfEach(reached.filter(({ token }) => isAbout(row, token))).slice(
    0,
    INSTANCES * row.states.length,
  );
}

/** One of the situations that differ only in their accounts. Those with a history come first. */
export function oneOfEach(situations: readonly Reached[]): Reached[] {
  const memory = ({ token }: Reached): number =>
    Number(token.previousBeneficiary !== undefined) + Number(token.previousHolder !== undefined);
  const kinds = new Map<string, Reached>();
  for (const one of situations) {
    const { token } = one;
    const remembered = [token.previousBeneficiary, token.previousHolder].map(
      (person) => person !== undefined,
    );
    const kind = [stateName(token), ...remembered].join();
    if (!kinds.has(kind)) kinds.set(kind, one);
  }
  return [...kinds.values()].sort((left, right) => memory(right) - memory(left));
}

/**
 * The call of a row for this token, with an account for each word. `x` and `y` are the first accounts without
 * a role; `otherX` replaces `x`.
 */
export function callOf(
  { operation, named }: WrittenCall,
  token: TokenModel,
  persons: readonly string[],
  otherX?: string,
): Call {
  const withoutRole = persons.filter(
    (person) => ![token.beneficiary, token.holder, token.nominee].includes(person),
  );
  const meant = (word: string | undefined): string => {
    if (word === 'x') return otherX ?? withoutRole[0] ?? '';
    if (word === 'y') return withoutRole[1] ?? '';
    return (word === undefined ? undefined : partOf(word, token)) ?? ZeroAddress;
  };
  if (operation === 'transferHolder') return { operation, first: ZeroAddress, second: meant(named[0]) };
  return { operation, first: meant(named[0]), second: meant(named[1]) };
}

/** The role if it is one of the registry, otherwise the account that has this role for the token. */
export function actorOf(by: string, token: TokenModel): string {
  return REGISTRY_ROLES.includes(by) ? by : (partOf(by, token) ?? '');
}

/** Whether the nominee may be a row's `x`. */
export function mayNameNominee({ operation, named }: WrittenCall, { nominee, holder }: TokenModel): boolean {
  const isOther = nominee !== undefined && nominee !== holder;
  return isOther && operation !== 'nominate' && named.includes('x') && !named.includes('nominee');
}

/** Whether a row is about exactly this call. */
export function isOfRow(
  row: OperationRow,
  token: TokenModel,
  call: Call,
  persons: readonly string[],
): boolean {
  if (row.operation !== call.operation || !isAbout(row, token)) return false;
  const { beneficiary, holder, nominee } = token;
  const isNamed = row.operation === 'nominate' || row.named.includes('nominee');
  const taken = [beneficiary, holder, ...(isNamed ? [nominee] : [])];
  const free = persons.filter((person) => !taken.includes(person));
  const named = call.operation === 'transferHolder' ? [call.second] : [call.first, call.second];
  const meaning = new Map<string, string>();
  return row.named.every((word, index) => {
    const account = named[index] ?? '';
    if (word !== 'x' && word !== 'y') return account === (partOf(word, token) ?? ZeroAddress);
    const isNew = ![...meaning].some(([other, one]) => other !== word && one === account);
    const isSame = (meaning.get(word) ?? account) === account;
    meaning.set(word, account);
    return isNew && isSame && free.includes(account);
  });
}
