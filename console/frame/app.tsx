import { useEffect, useRef, useState } from 'preact/hooks';
import type { Facts } from '../../service/console/views';
import { useIssuingState } from '../issuing/use-issuing-state';
import { FailureNotice } from '../parts/feedback';
import type { Subscription } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import { LoggedIn } from './logged-in';
import { LogInPage } from './log-in-page';
import { useKeptInput } from './use-kept-input';
import { useSession } from './use-session';

/** The console: the log-in, or its pages. */
export function App() {
  const control = useSession();
  const { session, api, failure, retry } = control;
  const [facts, setFacts] = useState<Facts>();
  const [factsFailure, setFactsFailure] = useState<RequestFailure>();
  const [createdSubscription, setCreatedSubscription] = useState<Subscription>();
  /** The version of the service that gave this page. */
  const [pageVersion, setPageVersion] = useState<string>();
  const issuing = useIssuingState();
  const wasAsked = useRef(false);
  if (session === null) wasAsked.current = true;
  const isUnsent = issuing.draft !== undefined && issuing.submission?.tokenId === undefined;
  useKeptInput(isUnsent || createdSubscription !== undefined);

  const readFacts = async (): Promise<void> => {
    setFactsFailure(undefined);
    try {
      const latest = await api.facts();
      setFacts(latest);
      setPageVersion((before) => before ?? latest.version);
    } catch (error) {
      setFactsFailure(failureFrom(error));
    }
  };
  useEffect(() => {
    if (session) void readFacts();
  }, [session]);

  const logOut = async (): Promise<void> => {
    await control.logOut();
    // The next person must not see what this one was about to issue.
    issuing.restart();
    setCreatedSubscription(undefined);
  };

  if (session === null) return <LogInPage reason={control.reason} onLogIn={control.logIn} />;
  // Facts that were read once are good enough until the next return.
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
  const known = { api, facts, session, issuing, createdSubscription, setCreatedSubscription };
  const isUpdated = facts.version !== pageVersion;
  return (
    <LoggedIn
      known={known}
      isUpdated={isUpdated}
      wasAsked={wasAsked.current}
      onReturn={() => void readFacts()}
      onLogOut={logOut}
    />
  );
}
