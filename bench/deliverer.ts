import pino from 'pino';
import { systemTime } from '../service/base/time';
import { openDatabase } from '../service/database/open-database';
import { deliver } from './outbox';

/** Delivers a feed as a process of the service. Arguments: the database, the feed, and the connections. */
async function main([databaseUrl, feed = '', connections]: string[]): Promise<void> {
  const database = await openDatabase(systemTime, { dataDir: '', databaseUrl }, pino({ level: 'silent' }));
  const delivery = deliver(database, Number(connections));
  await delivery.start(feed);
  console.log('delivering');
  process.once('SIGTERM', () => {
    void delivery
      .stop()
      .then(() => database.close())
      .then(() => process.exit());
  });
}

void main(process.argv.slice(2));
