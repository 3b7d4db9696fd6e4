import { createHash, randomBytes, randomInt } from 'node:crypto';
import pino from 'pino';
import { systemTime } from '../../../service/base/time';
import { openDatabase } from '../../../service/database/open-database';
import { createDatabaseJournal } from '../../../service/journal/journal';

const [dataDir = '', chainId, registryAddress = '', issuer = ''] = process.argv.slice(2);

/**
 * Adds documents to the journal of the database in the given folder until the process is killed. The id of a
 * token is the hash of its document. Prints each id once its document is stored.
 */
async function addDocuments(): Promise<never> {
  const database = await openDatabase(
    systemTime,
    { dataDir, databaseUrl: undefined },
    pino({ level: 'silent' }),
  );
  const scope = { chainId: Number(chainId), registryAddress, issuer };
  const journal = createDatabaseJournal(database, scope, systemTime);
  for (;;) {
    const document = new Uint8Array(randomBytes(randomInt(4) === 0 ? 5_000 : randomInt(300_000, 6_000_000)));
    const tokenId = createHash('sha256').update(document).digest('hex');
    const parties = { owner: '0x', holder: '0x', remark: '0x', blNumber: '1' };
    await journal.add({ credentialId: tokenId, tokenId, document, ...parties });
    process.stdout.write(`${tokenId}\n`);
  }
}

void addDocuments();
