import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { FailureNotice, Notice, ReaderNote, WhenLoaded } from '../parts/feedback';
import { ShownText, TokenLink } from '../parts/values';
import { useLoaded } from '../requests/use-loaded';
import { IssueForm } from './issue-form';
import { DownloadButton, ProgressLine } from './issued-document';

/** Issues a Bill of Lading: the form, and then how far its document is. */
export function IssuePage() {
  const { facts, issuing } = useConsole();
  const mayChange = useMayChange();
  const { submission } = issuing;
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
          <IssueForm />
          {submission && <SendingPanel />}
        </>
      )}
    </>
  );
}

/** While a document is sent, and when it is not known whether it arrived. */
function SendingPanel() {
  const { api, issuing } = useConsole();
  const failure = issuing.submission?.failure;
  const panel = useRef<HTMLDivElement>(null);
  // The locked form has lost the focus.
  useLayoutEffect(() => panel.current?.focus(), [failure]);
  return (
    <div ref={panel} tabIndex={-1}>
      {failure ? (
        <FailureNotice failure={failure}>
          <p>
            The document may have been issued. Trying again cannot issue it twice: the request is the same.
          </p>
          <p class="buttons">
            <button type="button" class="main" onClick={() => void issuing.sendAgain(api)}>
              Try again
            </button>
            <button type="button" onClick={issuing.edit}>
              Change the document
            </button>
          </p>
          <p class="dim">
            A changed document gets a token of its own. An unchanged document is not issued twice.
          </p>
        </FailureNotice>
      ) : (
        <Notice tone="plain" word="Sending">
          The service signs and stores the document.
        </Notice>
      )}
    </div>
  );
}

/** Each block may add a confirmation, and the service tells of no block. */
const POLL_MS = 2000;

interface Props {
  tokenId: string;
  blNumber: string;
}

/** How far an accepted document is, and the document itself. */
function IssuedPanel({ tokenId, blNumber }: Props) {
  const { api, issuing } = useConsole();
  const loaded = useLoaded(`progress ${tokenId}`, (signal) => api.progress(tokenId, signal));
  const { reload } = loaded;
  const state = loaded.data?.state ?? 'signed';
  const isSettled = state === 'final' || state === 'failed';
  useEffect(() => {
    if (isSettled) return undefined;
    const timer = setInterval(reload, POLL_MS);
    return () => clearInterval(timer);
  }, [isSettled, reload]);

  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // The button that had the focus is gone with the form.
    if (document.activeElement === document.body) heading.current?.focus();
  }, []);

  const isMined = state === 'mined' || state === 'final';
  return (
    <section class="card" aria-labelledby="issued">
      <h2 id="issued" ref={heading} tabIndex={-1}>
        Bill of Lading <ShownText text={blNumber} longest={80} />
      </h2>
      <WhenLoaded loaded={loaded}>{(progress) => <ProgressLine progress={progress} />}</WhenLoaded>
      <p>
        Token <TokenLink id={tokenId} />
      </p>
      <p class="buttons">
        <DownloadButton tokenId={tokenId} isMain isDisabled={!isMined} />
        <a href={hrefOf('token', { id: tokenId })}>Show the token</a>
        <button type="button" onClick={issuing.restart}>
          Issue another document
        </button>
      </p>
      {!isMined && state !== 'failed' && (
        <p class="dim">The credential can be downloaded when its mint is mined.</p>
      )}
    </section>
  );
}
