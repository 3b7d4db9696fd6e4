import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Facts } from '../../service/console/views';
import { createIssuing, NOTHING, type IssuingState } from '../issuing/issuing-state';
import { FailureNotice } from '../parts/feedback';
import type { Subscription } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import { LogInPage, useSession } from './log-in';
import { LoggedIn } from './logged-in';

/** The console: the log-in, or its pages. */
export function App() {
  const { session, reason, failure, api, logIn, logOut, retry } = useSession();
  const [facts, setFacts] = useState<Facts>();
  const [factsFailure, setFactsFailure] = useState<RequestFailure>();
  const [createdSubscription, setCreatedSubscription] = useState<Subscription>();
  /** The version of the service that gave this page. */
  const pageVersion = useRef<string>(undefined);
  const issuing = useIssuingState();
  const wasAsked = useRef(false);
  if (session === null) wasAsked.current = true;
  const isUnsent = issuing.draft !== undefined && issuing.submission?.tokenId === undefined;
  useKeptInput(isUnsent || createdSubscription !== undefined);

  const readFacts = async (): Promise<void> => {
    setFactsFailure(undefined);
    try {
      const latest = await api.facts();
      pageVersion.current ??= latest.version;
      setFacts(latest);
    } catch (error) {
      setFactsFailure(failureFrom(error));
    }
  };
  useEffect(() => {
    if (session) void readFacts();
  }, [session]);

  if (session === null) return <LogInPage reason={reason} onLogIn={logIn} />;
  // Facts that were read once are good enough until the service answers again.
  const lost = failure ?? (facts ? undefined : factsFailure);
  if (lost)
    return (
      <main class="log-in">
        <h1>Console</h1>
        <FailureNotice failure={lost}>
          <button type="button" onClick={failure ? retry : () => void readFacts()}>
            Try again
          </button>
        </FailureNotice>
      </main>
    );
  if (!session || !facts)
    return (
      <main class="log-in" aria-busy="true">
        <h1>Console</h1>
        <p class="dim">Reading …</p>
      </main>
    );
  return (
    <LoggedIn
      known={{ api, facts, session, issuing, createdSubscription, setCreatedSubscription }}
      isUpdated={facts.version !== pageVersion.current}
      wasAsked={wasAsked.current}
      onReturn={() => void readFacts()}
      onLogOut={async () => {
        await logOut();
        // The next person must not see what this one was about to issue.
        issuing.restart();
        setCreatedSubscription(undefined);
      }}
    />
  );
}

/** The document that is being issued, as it changes. */
function useIssuingState(): IssuingState {
  const [now, setNow] = useState(NOTHING);
  const actions = useMemo(() => createIssuing(setNow), []);
  return { ...now, ...actions };
}

/** Asks before the tab is left while it has something that nothing else keeps. */
function useKeptInput(hasInput: boolean): void {
  useEffect(() => {
    // A file that is dropped beside its field would replace the page.
    const ignore = (event: DragEvent): void => event.preventDefault();
    addEventListener('dragover', ignore);
    addEventListener('drop', ignore);
    return () => {
      removeEventListener('dragover', ignore);
      removeEventListener('drop', ignore);
    };
  }, []);
  useEffect(() => {
    if (!hasInput) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [hasInput]);
}
