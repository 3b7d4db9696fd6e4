import { Ajv2020 } from 'ajv/dist/2020';
import {
  EVENT_SCHEMAS,
  historyOf,
  isKnown,
  isOfChain,
  isPausedAfter,
  tokenStateOf,
  type ChainEvent,
  type Retraction,
  type TokenState,
} from '../../client/events';
import { parseEvent } from '../../receiver/store';
import type { Answer } from '../answer';
import { invalid } from '../errors';
import { bytesOf } from '../files/user-file';

// A file, unlike a webhook, has no signature that vouches for the members of its events.
const ajv = new Ajv2020({ meta: false, validateSchema: false, validateFormats: false });

/** The histories of tokens and registries, none of them empty, by their names. */
type Histories = Map<string, [ChainEvent | Retraction, ...(ChainEvent | Retraction)[]]>;

/**
 * The states that a file of events leads to: those of tokens, and of registries that were paused.
 *
 * @param path events as JSON Lines, in the order in which they arrived, as the reference receiver keeps them.
 */
export async function showStates(path: string): Promise<Answer> {
  const histories: Histories = new Map();
  const remarks: string[] = [];
  const lines = (await bytesOf(path)).toString('utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const problem = addTo(histories, line);
    if (problem !== undefined) remarks.push(`Line ${index + 1} was left out: ${problem}.`);
  }
  const all = [...histories.values()].map((history) => {
    const [{ source, data }] = history;
    if (!('tokenIdHex' in data)) return { source, isPaused: isPausedAfter(history) };
    return { source, tokenId: data.tokenId, ...tokenStateOf(history) };
  });
  if (all.length === 0 && remarks.length > 0)
    throw invalid(`${path} has no events: give a file of JSON Lines. ${remarks[0]}`);
  return { lines: all.map(lineOf), json: all, isJsonLines: true, isYes: true, remarks };
}

function addTo(histories: Histories, line: string): string | undefined {
  const event = parseEvent(Buffer.from(line));
  if (event === undefined) return 'it is no event';
  if (!isKnown(event)) return 'it is of no known type';
  if (!ajv.validate(EVENT_SCHEMAS[event.type], event))
    return `the event is not as its schema says: ${ajv.errorsText(ajv.errors, { dataVar: '' })}`;
  if (!isOfChain(event)) return undefined;
  const name = historyOf(event) ?? '';
  const history = histories.get(name);
  if (history) history.push(event);
  else histories.set(name, [event]);
  return undefined;
}

type ShownState = { source: string } & (({ tokenId: string } & TokenState) | { isPaused: boolean });

function lineOf(state: ShownState): string {
  if ('isPaused' in state) return `${state.source}  ${state.isPaused ? 'paused' : 'not paused'}`;
  const { source, tokenId, beneficiary, holder, nominee } = state;
  const parties = Object.entries({ beneficiary, holder, nominee }).flatMap(([role, who]) =>
    who === null ? [] : `${role} ${who}`,
  );
  return [source, `token ${tokenId}`, state.state, ...parties].join('  ');
}
