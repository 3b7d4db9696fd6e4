import { ZeroAddress } from 'ethers';
import { quoted, readDocument, tables } from './markdown';
import {
  apply,
  TOKEN_OPERATIONS,
  unmintedToken,
  type Named,
  type TokenModel,
  type TokenOperation,
} from '../chain/token-model';

/** An operation as a row of docs/states.md writes it: `transferOwners(nominee, x)`. */
interface WrittenCall {
  operation: TokenOperation;
  /** The accounts that it names, in the words of the page. */
  named: readonly string[];
}

/** A row with its call, actor, states and condition. */
interface Row extends WrittenCall {
  /** The text of the row in the page, for messages. */
  text: string;
  by: string;
  states: readonly string[];
  condition: string;
}

/** A row of "Operations". */
export interface OperationRow extends Row {
  leadsTo: string;
  previousBeneficiary: string;
  previousHolder: string;
  logs: string[];
  errorForOthers: string | undefined;
}

/** A row of "Refusals". */
export interface RefusalRow extends Row {
  error: string | undefined;
}

/** A row of "Logs and events". `operation`: undefined for all. */
interface LogRow {
  log: string;
  emitter: string;
  operation: string | undefined;
  type: string | undefined;
}

const IN_ESCROW = ['one owner', 'one owner with nominee', 'two owners', 'two owners with nominee'];

const page = readDocument('docs/states.md');

/** The names of all states. */
export const STATES = table('States').map(([state = '']) => state);

/** The operations that the contracts accept. */
export const OPERATION_ROWS: OperationRow[] = table('Operations').map((cells) => {
  const [call = '', by = '', state = '', condition = '', leadsTo = '', ...rest] = cells;
  const [previousBeneficiary = '', previousHolder = '', logs = '', others = ''] = rest;
  const row = rowOf(cells, call, by, state, condition);
  const memory = { previousBeneficiary, previousHolder };
  return { ...row, leadsTo, ...memory, logs: quoted(logs), errorForOthers: quoted(others)[0] };
});

/** The calls that the contracts refuse. */
export const REFUSAL_ROWS: RefusalRow[] = table('Refusals').map((cells) => {
  const [call = '', by = '', state = '', condition = '', error = ''] = cells;
  return { ...rowOf(cells, call, by, state, condition), error: quoted(error)[0] };
});

/** The logs of the contracts, with their event types. */
export const LOG_ROWS: LogRow[] = table('Logs and events').map(([log = '', emitter = '', ...rest]) => {
  const [operation = '', type = ''] = rest;
  return { log: quoted(log)[0] ?? '', emitter, operation: quoted(operation)[0], type: quoted(type)[0] };
});

/** The rows about the pause: operations of the admin, and refusals. The cells are unchanged. */
export const [PAUSE_ROWS = [], PAUSE_REFUSALS = []] = tables(page.section('While the registry is paused'));

/** The arrows of the diagram: "one owner → two owners: transferHolder", one for each operation. */
export function diagramArrows(): string[] {
  const diagram = page.code('States', 'mermaid');
  const names = new Map(
    [...diagram.matchAll(/state "(.*)" as (\w+)/g)].map(([, name = '', id = '']) => [id, name]),
  );
  return [...diagram.matchAll(/^ *(\w+) --> (\w+): (.*)$/gm)].flatMap(
    ([, from = '', to = '', operations = '']) =>
      operations.split(', ').map((operation) => `${names.get(from)} → ${names.get(to)}: ${operation}`),
  );
}

/** The state of a token, by the name that the page gives it. */
export function stateName(token: TokenModel): string {
  if (token.place === 'unminted') return 'not minted';
  if (token.place === 'with the registry') return 'returned to issuer';
  if (token.place === 'burned') return 'shredded';
  const owners = token.beneficiary === token.holder ? 'one owner' : 'two owners';
  return token.nominee === undefined ? owners : `${owners} with nominee`;
}

/** Whether a row is about a token as it is now. */
export function isAbout({ states, condition, named, by }: Row, token: TokenModel): boolean {
  if (named.includes('nominee') && token.nominee === undefined) return false;
  if (by === 'both' && token.beneficiary !== token.holder) return false;
  return states.includes(stateName(token)) && isMet(condition, token);
}

function isMet(condition: string, token: TokenModel): boolean {
  if (condition === '') return true;
  const [, quantity, alone] = /^(no|a) (.*)$/.exec(condition) ?? [];
  if (alone !== undefined) return (partOf(alone, token) === undefined) === (quantity === 'no');
  const [left = '', relation, right = ''] = condition.split(/ ([=≠]) /);
  const [one, other] = [partOf(left, token), partOf(right, token)];
  return one !== undefined && other !== undefined && (one === other) === (relation === '=');
}

/** The account that has a role, by the page's word for the role. */
export function partOf(word: string, token: TokenModel): string | undefined {
  switch (word) {
    case 'beneficiary':
      return token.beneficiary;
    case 'holder':
    case 'both':
      return token.holder;
    case 'nominee':
      return token.nominee;
    case 'previous beneficiary':
      return token.previousBeneficiary;
    case 'previous holder':
      return token.previousHolder;
    case 'nobody':
      return ZeroAddress;
    default:
      throw new Error(`docs/states.md: nobody is called "${word}"`);
  }
}

function table(heading: string): string[][] {
  const [first] = tables(page.section(heading));
  if (first === undefined) throw new Error(`docs/states.md has no table under "${heading}"`);
  return first;
}

function rowOf(cells: string[], call: string, by: string, state: string, condition: string): Row {
  const [, name, names = ''] = /^(\w+)\((.*)\)$/.exec(quoted(call)[0] ?? '') ?? [];
  const operation = TOKEN_OPERATIONS.find((known) => known === name);
  if (operation === undefined) throw new Error(`docs/states.md: there is no operation ${call}`);
  const states = state.split(', ').flatMap((one) => (one === 'in escrow' ? IN_ESCROW : [one]));
  const unknown = states.find((one) => !STATES.includes(one));
  if (unknown !== undefined) throw new Error(`docs/states.md: there is no state "${unknown}"`);
  const named = names === '' ? [] : names.split(', ');
  return { text: cells.join(' | '), operation, named, by, states, condition };
}

/** An operation with the accounts that it names. */
export interface NamedCall extends Named {
  operation: TokenOperation;
}

/** A state of a token with all that the contracts store, and a path to it. `by`: see `actorOf`. */
export interface Reached {
  token: TokenModel;
  path: { call: NamedCall; by: string }[];
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
      const call = namedIn(row, token, persons);
      const next = { ...token };
      apply(next, call.operation, call);
      const step = { call, by: actorOf(row.by, token) };
      if (!found.has(keyOf(next))) found.set(keyOf(next), { token: next, path: [...path, step] });
    }
  }
  return [...found.values()];
}

const keyOf = (token: TokenModel): string => Object.values(token).join();

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
export function namedIn(
  { operation, named }: WrittenCall,
  token: TokenModel,
  persons: readonly string[],
  otherX?: string,
): NamedCall {
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
  call: NamedCall,
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
