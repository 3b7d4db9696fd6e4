import type { ListedRegistry } from '../../service/followed-registries/registries';
import type { Answer } from '../answer';
import { printableJson } from '../terminal/printable';
import { withRegistries } from './with-registries';

/** Lists the followed registries. The service may be running. */
export async function listRegistries(): Promise<Answer> {
  const registries = await withRegistries((all) => all.list());
  const lines = registries.map(lineOf);
  return {
    lines: lines.length === 0 ? ['no registry is followed'] : lines,
    json: printableJson({ registries: registries.map(withoutStatus) }),
    isYes: true,
  };
}

function lineOf({ network, address, origin, confirmations, undelivered, feed }: ListedRegistry): string {
  const read = feed.nextBlock === undefined ? 'not read yet' : `next block ${feed.nextBlock}`;
  const added = origin === 'settings' ? 'of the settings' : 'added';
  return (
    `${network}  ${address}  ${added}, ${confirmations ?? '?'} confirmations, ` +
    `${read}, ${undelivered} undelivered`
  );
}

/** A registry as JSON. Only a running service knows the state of its feed. */
export function withoutStatus({ feed, ...registry }: ListedRegistry): object {
  return { ...registry, nextBlock: feed.nextBlock ?? null };
}
