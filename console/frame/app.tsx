import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Facts } from '../../service/console/views';
import { createIssuing, NOTHING } from '../issuing/issuing-state';
import { FailureNotice } from '../parts/feedback';
import type { Api } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import type { SubscriptionDraft } from '../subscriptions/subscription-draft';
import type { Created } from './console-context';
import { LogInPage, useSession, type SessionState } from './log-in';
import { LoggedIn } from './logged-in';

/** The version of the service that gave this page. */
let pageVersion: string | undefined;
/** Whether the page asked for a key. */
let wasAsked = false;

/** All is new for another owner, who sees and sends nothing of what the last one began. */
export function App() {
  const current = useSession();
  return <OwnersPage key={current.owner} {...current} />;
}

interface Props extends SessionState {
  api: Api;
  logIn: (findKey: () => Promise<string>) => Promise<void>;
  logOut: () => Promise<void>;
  retry: () => void;
}

/** The forms that its owner began stay when the session ends. */
function OwnersPage({ session, reason, failure, api, logIn, logOut, retry }: Props) {
  const [facts, setFacts] = useState<Facts>();
  const [factsFailure, setFactsFailure] = useState<RequestFailure>();
  const [created, setCreated] = useState<Created>();
  const [subscriptionDraft, setSubscriptionDraft] = useState<SubscriptionDraft>();
  const [issuingNow, setIssuingNow] = useState(NOTHING);
  const actions = useMemo(() => createIssuing(setIssuingNow), []);
  const issuing = { ...issuingNow, ...actions };
  // The check of a document, which is sent after it, may be under way.
  useEffect(() => actions.restart, []);
  const isUnsent = issuing.draft !== undefined && issuing.submission?.tokenId === undefined;
  useKeptInput(isUnsent || created !== undefined);
  wasAsked ||= session === null;

  const readFacts = async (): Promise<void> => {
    setFactsFailure(undefined);
    try {
      const latest = await api.facts();
      pageVersion ??= latest.version;
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
      known={{ api, facts, session, issuing, created, setCreated, subscriptionDraft, setSubscriptionDraft }}
      isUpdated={facts.version !== pageVersion}
      wasAsked={wasAsked}
      onReturn={() => void readFacts()}
      onLogOut={logOut}
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
