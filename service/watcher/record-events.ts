import { SpanKind } from '@opentelemetry/api';
import type { Lifecycle } from '../base/lifecycle';
import { registryName } from '../base/registry-name';
import type { Time } from '../base/time';
import { beginSpan, endSpan, parseTraceparent, type BegunSpan } from '../base/trace';
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
  tracesOf: (tokenIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}

/**
 * Stores the events of a range with their places in traces. Those of a mint go on with the trace of the
 * document. Each later operation of a token begins a trace, with a link to that of the document.
 */
export async function recordEvents(
  { database, identity, time, lifecycle, tracesOf }: Recording,
  open: OpenFeed,
  range: RecordedRange | ReadAgain,
): Promise<Recorded> {
  const name = registryName(identity.chainId, identity.registryAddress);
  const documents = await tracesOf([...new Set(range.events.map(tokenOf))]);
  const mints = new Set(range.events.filter(({ type }) => type === 'minted').map(operationOf));
  const spans = new Map<string, BegunSpan>();
  const begin = (event: RegistryEvent): BegunSpan => {
    const token = tokenOf(event);
    const document = documents.get(token);
    const isMint = mints.has(operationOf(event));
    const linked = isMint ? undefined : parseTraceparent(document);
    return beginSpan('read', isMint ? document : undefined, {
      kind: SpanKind.CONSUMER,
      startTime: Math.min(event.blockTimestamp * 1_000, time.now()),
      attributes: { 'etr.token_id': token || undefined, 'etr.transaction_hash': event.transactionHash },
      links: linked ? [{ context: linked }] : [],
    });
  };
  const events = range.events.map((event): RegistryEvent => {
    const begun = spans.get(operationOf(event)) ?? begin(event);
    spans.set(operationOf(event), begun);
    return { ...event, trace: begun[1] };
  });
  const recorded = await recordRange(database, open, identity, { ...range, events }, time.now());
  // Otherwise they were stored before, and have their spans.
  if (recorded.added === 0) return recorded;
  for (const [span] of spans.values()) endSpan(span, false, time.now());
  lifecycle.emit('recorded', name, recorded.added);
  return recorded;
}

/** Empty for events of the registry itself. */
function tokenOf({ tokenId }: RegistryEvent): string {
  return tokenId === undefined ? '' : tokenIdHexOf(tokenId);
}

function operationOf(event: RegistryEvent): string {
  return `${event.transactionHash}/${tokenOf(event)}`;
}
