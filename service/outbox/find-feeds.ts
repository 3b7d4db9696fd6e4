import type { Kysely } from 'kysely';
import type { RegistryName } from '../base/registry-name';
import type { Schema } from '../database/schema';

/**
 * The current feed of each registry, or of the one given. A local chain that was restarted leaves the feed of
 * its predecessor behind; nothing is delivered from that feed any more.
 *
 * @param registry address, or chain id and address (`80002:0x…`), in any case.
 */
export async function findFeeds(db: Kysely<Schema>, registry?: string): Promise<string[]> {
  const feeds = await findAllFeeds(db, registry);
  return [...new Map(feeds.map((feed) => [registryOfFeed(feed), feed])).values()];
}

/** Like `findFeeds`, with the feeds that were left behind. */
export async function findAllFeeds(db: Kysely<Schema>, registry?: string): Promise<string[]> {
  const rows = await db.selectFrom('feeds').select('feed').orderBy('opened_at').orderBy('feed').execute();
  const wanted = registry?.toLowerCase();
  return rows.flatMap(({ feed }) => {
    const name = registryOfFeed(feed);
    return wanted === undefined || name === wanted || name.endsWith(`:${wanted}`) ? feed : [];
  });
}

/** The first block of each of these feeds that has not been read. */
export async function nextBlocksOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<{ feed: string; nextBlock: number }[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('feeds')
    .select(['feed', 'next_block'])
    .where('feed', 'in', feeds)
    .orderBy('feed')
    .execute();
  return rows.map(({ feed, next_block }) => ({ feed, nextBlock: Number(next_block) }));
}

export function registryOfFeed(feed: string): RegistryName {
  return feed.split(':').slice(0, 2).join(':') as RegistryName;
}
