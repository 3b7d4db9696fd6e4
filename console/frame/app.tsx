import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Facts } from '../../service/console/views';
import { createIssuing, NOTHING } from '../issuing/issuing-state';
import { FailureNotice } from '../parts/feedback';
import { failureFrom, type RequestFailure } from '../requests/request';
import type { SubscriptionDraft } from '../subscriptions/subscription-draft';
import type { Created } from './console-context';
import { LogInPage, useSession } from './log-in';
import { LoggedIn } from './logged-in';

export function App() {
  const { session, reason, failure, api, logIn, logOut, retry } = useSession();
  const [facts, setFacts] = useState<Facts>();
  const [factsFailure, setFactsFailure] = useState<RequestFailure>();
  const [created, setCreated] = useState<Created>();
  const [subscriptionDraft, setSubscriptionDraft] = useState<SubscriptionDraft>();
  /** The version of the service that gave this page. */
  const pageVersion = useRef<string>(undefined);
  const [issuingNow, setIssuingNow] = useState(NOTHING);
  const actions = useMemo(() => createIssuing(setIssuingNow), []);
  const issuing = { ...issuingNow, ...actions };
  const wasAsked = useRef(false);
  if (session === null) wasAsked.current = true;
  const isUnsent = issuing.draft !== undefined && issuing.submission?.tokenId === undefined;
  useKeptInput(isUnsent || created !== undefined);
  const forget = (): void => {
    issuing.restart();
    setCreated(undefined);
    setSubscriptionDraft(undefined);
  };
  const who = session && (session.holder?.name ?? session.role);
  const lastWho = useRef(who);
  useLayoutEffect(() => {
    // Another person must not see what the last one was about to send.
    if (who && who !== lastWho.current) forget();
    lastWho.current = who ?? lastWho.current;
  }, [who]);

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

  if (session === null) return <LogInPage reason={reason} api={api} onLogIn={logIn} />;
  // The former facts are shown when they cannot be read again.
  const lost = failure ?? (facts ? undefined : factsFailure);
  if (lost || !session || !facts)
    return (
      <main class="log-in" aria-busy={!lost}>
        <h1>Console</h1>
        {lost ? (
          <FailureNotice failure={lost}>
            <button type="button" onClick={failure ? retry : () => void readFacts()}>
              Try again
            </button>
          </FailureNotice>
        ) : (
          <p class="dim">Reading …</p>
        )}
      </main>
    );
  return (
    <LoggedIn
      known={{
        ...{ api, facts, session, issuing, created, setCreated },
        ...{ subscriptionDraft, setSubscriptionDraft },
      }}
      isUpdated={facts.version !== pageVersion.current}
      wasAsked={wasAsked.current}
      onReturn={() => void readFacts()}
      onLogOut={async () => {
        await logOut();
        forget();
      }}
    />
  );
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
