import { expect } from 'chai';
import { systemTime } from '../../service/base/time';
import { createDatabaseJournal, type Journal } from '../../service/journal/journal';
import type { JournalScope } from '../../service/journal/issuance';
import { describeOnEngines } from '../helpers/database/engines';
import { tdoc } from '../helpers/processes/command-output';
import { askTdocInProcess, tdocInProcess } from '../helpers/processes/tdoc-in-process';
import { mintedBy, preparedDocument, SCOPE } from '../helpers/database/prepared-documents';

const DAY_MS = 86_400_000;

describeOnEngines(
  'npx tdoc purge-documents',
  (on) => {
    let journal: Journal;
    let settings: Record<string, string>;
    let now = 0;
    const journalOf = (scope: JournalScope): Journal =>
      createDatabaseJournal(on.database, scope, { now: () => now });

    before(() => {
      journal = journalOf(SCOPE);
      settings = {
        ...on.state.settings,
        ENV_FILE: `${on.state.settings.DATA_DIR}/none.env`,
        NET: '31337',
        TOKEN_REGISTRY_ADDRESS: SCOPE.registryAddress,
      };
    });

    /** An issuance that was mined so many days ago. */
    const issued = async (daysAgo: number, inJournal = journal): Promise<string> => {
      now = systemTime.now() - daysAgo * DAY_MS;
      const prepared = preparedDocument(1_000_000);
      await inJournal.add(prepared);
      await inJournal.mined(prepared.tokenId, mintedBy('0x01'), true);
      return prepared.tokenId;
    };
    const command = (...args: string[]): Promise<string> =>
      tdocInProcess(['purge-documents', ...args], settings);
    const problemOf = (...args: string[]): Promise<string> =>
      command(...args).then(
        () => 'it was accepted',
        (error: { stderr: string }) => error.stderr,
      );

    it('removes old documents while the service runs, after a confirmation, and reports them', async () => {
      const [old, recent] = [await issued(40), await issued(20)];
      const ofAnotherIssuer = journalOf({ ...SCOPE, issuer: 'did:web:other.example' });
      const oldWallets = await issued(40, ofAnotherIssuer);
      const registryAddress = `0x${'cc'.repeat(20)}`;
      const ofAnotherTenant = journalOf({ ...SCOPE, registryAddress });
      const others = await issued(40, ofAnotherTenant);
      const unfinished = preparedDocument();
      await journal.add(unfinished);

      expect(await problemOf('--older-than', '30')).to.match(/Nothing was removed.*CONFIRMATION_MISSING/);
      expect(await journal.find(old)).not.to.equal(undefined);
      // In a process of its own, like beside a service: the database is open in this one.
      const output = await tdoc(['purge-documents', '--older-than', '30', '--yes'], settings);
      expect(output)
        .to.match(/31337:0xaa.*:did:web:carrier\.example.* 1 \(1\.0 MB\)\. This cannot be undone\./)
        .and.match(/2 removed/);
      expect(await journal.find(old)).to.equal(undefined);
      expect(await ofAnotherIssuer.find(oldWallets)).to.equal(undefined);
      for (const kept of [recent, unfinished.tokenId])
        expect(await journal.find(kept)).not.to.equal(undefined);
      expect(await ofAnotherTenant.find(others)).not.to.equal(undefined);
      expect(await command('--older-than', '30')).to.match(/nothing to remove/);
      const ofTheOther = ['purge-documents', '--older-than', '30', '--registry', registryAddress, '--json'];
      const refused = await askTdocInProcess(ofTheOther, settings);
      expect(refused.code).to.equal(1);
      expect(JSON.parse(refused.stdout)).to.include({ outcome: 'refused', code: 'CONFIRMATION_MISSING' });
      const removed = await askTdocInProcess([...ofTheOther, '--yes'], settings);
      expect(JSON.parse(removed.stdout)).to.include({ removed: 1 }).and.have.property('before');
      expect(removed.stderr).to.contain(registryAddress);
      expect(await ofAnotherTenant.find(others)).to.equal(undefined);
    });

    it('removes one document, in any form of its id, unless it is being issued', async () => {
      const [one, other] = [await issued(1), await issued(1)];
      expect(await problemOf('--token', one)).to.match(/CONFIRMATION_MISSING/);
      const removed = await command('--token', String(BigInt(`0x${one}`)), '--yes', '--json');
      expect(JSON.parse(removed)).to.deep.equal({ removed: 1, tokenId: one });
      expect(await journal.find(one)).to.equal(undefined);
      expect(await journal.find(other)).not.to.equal(undefined);
      const unfinished = preparedDocument();
      await journal.add(unfinished);
      expect(await problemOf('--token', unfinished.tokenId, '--yes')).to.match(/is being issued/);
      expect(await problemOf('--token', one, '--yes')).to.match(/DOCUMENT_UNKNOWN/);
    });

    it('explains wrong arguments', async () => {
      const both = ['--older-than', '1', '--token', '1'];
      for (const args of [[], both])
        expect(await problemOf(...args)).to.match(/Give one of --older-than DAYS/);
      expect(await problemOf('--older-than', '-1')).to.match(/--older-than.* whole number/);
      expect(await problemOf('--token', 'nonsense')).to.match(/is not a token id/);
      expect(await problemOf('--older-than', '1', '--registry', '0x12')).to.match(/is not an address/);
    });
  },
  { isSharedByTests: true },
);
