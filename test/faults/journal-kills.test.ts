import { spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
// eslint-disable-next-line no-restricted-syntax -- real time: the kill comes at a random moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { inheritedEnvironment } from '../../service/config/config';
import { createDatabaseJournal } from '../../service/journal/journal';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { bundledScript } from '../helpers/processes/bundled-script';
import { newState, openState, type State } from '../helpers/database/engines';
import { collected, SCOPE } from '../helpers/database/prepared-documents';

/** More than half of the kills interrupt the storing of a document. */
const INTERRUPTIONS = 4;
const MOST_KILLS = 30;
const LONGEST_WRITING_MS = 150;
const TWO_HOURS_MS = 7_200_000;
const WRITER = `import './test/helpers/database/journal-writer';`;

describe('a journal whose process is killed repeatedly', () => {
  it('has the whole document of every issuance, and every document that it acknowledged', async () => {
    await using state = (await newState('SQLite'))!;
    await using writer = bundledScript(WRITER);
    const acknowledged = new Set<string>();
    let interrupted = 0;
    for (let kill = 1; interrupted < INTERRUPTIONS && kill <= MOST_KILLS; kill++) {
      for (const tokenId of await writeAndDie(state, writer.path)) acknowledged.add(tokenId);
      interrupted += await look(state, acknowledged);
    }
    expect(acknowledged.size).to.be.greaterThan(INTERRUPTIONS);
    expect(interrupted).to.be.at.least(INTERRUPTIONS);
  });

  /** Returns the token ids of the documents that the writer acknowledged. */
  async function writeAndDie({ settings }: State, script: string): Promise<string[]> {
    const { chainId, registryAddress, issuer } = SCOPE;
    const args = [script, settings.DATA_DIR, String(chainId), registryAddress, issuer];
    const writer = spawn(process.execPath, args, {
      cwd: PROJECT_ROOT,
      env: inheritedEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    writer.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const ended = once(writer, 'close');
    await Promise.race([once(writer.stdout, 'data'), ended]);
    await sleep(randomInt(LONGEST_WRITING_MS));
    writer.kill('SIGKILL');
    expect((await ended)[1]).to.equal('SIGKILL');
    return output.split('\n').slice(0, -1);
  }

  /** Reads everything, as the next start does; returns how many documents were unfinished. */
  async function look(state: State, acknowledged: ReadonlySet<string>): Promise<number> {
    await using database = await openState(state);
    const journal = createDatabaseJournal(database, SCOPE, { now: () => systemTime.now() + TWO_HOURS_MS });
    const stored = (await journal.unfinished()).map(({ issuance }) => issuance.tokenId);
    expect(stored).to.include.members([...acknowledged]);
    for (const tokenId of stored) {
      const document = await collected(journal.documentOf(tokenId));
      expect(createHash('sha256').update(document).digest('hex')).to.equal(tokenId);
    }
    const loose = await database.db.selectFrom('loose_documents').selectAll().execute();
    await journal.purge(0);
    const parts = await database.db.selectFrom('document_parts').select('token_id').distinct().execute();
    expect(parts.map(({ token_id }) => token_id).sort()).to.deep.equal([...stored].sort());
    return loose.length;
  }
});
