import { ZeroAddress } from 'ethers';
import { quoted, readDocument, tables } from './markdown';
import { TOKEN_OPERATIONS, type TokenModel, type TokenOperation } from '../chain/token-model';

/** An operation as a row of docs/states.md writes it: `transferOwners(nominee, x)`. */
export interface WrittenCall {
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
export interface LogRow {
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
