import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { ReaderNote } from '../parts/feedback';
import { firstDraft } from './draft';
import { IssueForm } from './issue-form';
import { IssuedPanel } from './issued-panel';
import { SendingPanel } from './sending-panel';

/** Issues a Bill of Lading: the form, and then how far its document is. */
export function IssuePage() {
  const { facts, issuing } = useConsole();
  const mayChange = useMayChange();
  const { submission, draft = firstDraft(facts) } = issuing;
  return (
    <>
      <h1>Issue a Bill of Lading</h1>
      {!mayChange ? (
        <ReaderNote what="issuing" />
      ) : !facts.canIssue ? (
        <p class="note">
          This service issues no documents: it lacks the settings of an issuer.{' '}
          <a href={hrefOf('overview')}>The overview names them.</a>
        </p>
      ) : submission?.tokenId !== undefined ? (
        <IssuedPanel tokenId={submission.tokenId} blNumber={submission.blNumber} />
      ) : (
        <>
          <IssueForm draft={draft} isLocked={submission !== undefined} />
          {submission && <SendingPanel />}
        </>
      )}
    </>
  );
}
