import { SpanKind, type Link } from '@opentelemetry/api';
import type { Lifecycle } from '../base/lifecycle';
import { registryName } from '../base/registry-name';
import type { Time } from '../base/time';
import { beginSpan, parseTraceparent, type BegunSpan } from '../base/trace';
import type { Database } from '../database/database';
import type { RegistryIdentity } from '../events/cloud-event';
import type { OpenFeed } from '../outbox/feeds';
import { recordRange, type ReadAgain, type Recorded, type RecordedRange } from '../outbox/record-range';
import type { RegistryEvent } from '../registry/registry-event';
import { tokenIdHexOf } from '../registry/token-id-forms';

/** The parts that recording needs. */
export interface Recording {
  identity: RegistryIdentity;
  database: Database;
  time: Time;
  lifecycle: Lifecycle;
  /**
   * The traces of the registry's tokens that were issued here, by their ids in 64 hexadecimal digits. Tokens
   * without one are left out.
   */
  tracesOf(this: void, tokenIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Stores the events of a range with their places in traces. */
export async function recordEvents(
  recording: Recording,
  open: OpenFeed,
  range: RecordedRange | ReadAgain,
): Promise<Recorded> {
  const { database, identity, time, lifecycle } = recording;
  const { events, spans } = await traceEvents(range.events, recording);
  const outcome = await recordRange(database, open, identity, { ...range, events }, time.now());
  for (const { span } of spans) span.end(time.now());
  const { chainId, registryAddress } = identity;
  if (outcome.added > 0) lifecycle.emit('recorded', registryName(chainId, registryAddress), outcome.added);
  return outcome;
}

/**
 * The events of a mint go on with the trace of the document. Each later operation of a token begins a trace,
 * with a link to that of the document.
 */
async function traceEvents(
  events: readonly RegistryEvent[],
  { tracesOf, time }: Recording,
): Promise<{ events: RegistryEvent[]; spans: Iterable<BegunSpan> }> {
  const spans = new Map<string, BegunSpan>();
  if (events.length === 0) return { events: [], spans: [] };
  const named = events.map((event) => {
    const tokenId = event.tokenId === undefined ? '' : tokenIdHexOf(event.tokenId);
    return { event, tokenId, operation: `${event.transactionHash}/${tokenId}` };
  });
  const documents = await tracesOf([...new Set(named.map(({ tokenId }) => tokenId))]);
  const mints = new Set(named.flatMap(({ event, operation }) => (event.type === 'minted' ? operation : [])));
  const begin = ({ event, tokenId, operation }: (typeof named)[number]): BegunSpan => {
    const document = documents.get(tokenId);
    const isMint = mints.has(operation);
    return beginSpan('read', isMint ? document : undefined, {
      kind: SpanKind.CONSUMER,
      startTime: Math.min(event.blockTimestamp * 1_000, time.now()),
      attributes: { 'etr.token_id': tokenId, 'etr.transaction_hash': event.transactionHash },
      links: isMint ? [] : linksTo(document),
    });
  };
  const traced = named.map((one): RegistryEvent => {
    const begun = spans.get(one.operation) ?? begin(one);
    spans.set(one.operation, begun);
    return { ...one.event, trace: begun.trace };
  });
  return { events: traced, spans: spans.values() };
}

function linksTo(traceparent = ''): Link[] {
  const context = parseTraceparent(traceparent);
  return context ? [{ context }] : [];
}
