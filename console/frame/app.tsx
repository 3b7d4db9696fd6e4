import { useEffect, useState } from 'preact/hooks';
import type { Facts } from '../../service/console/views';
import { useIssuingState } from '../issuing/issuing-state';
import { FailureNotice } from '../parts/notice';
import { failureFrom, type RequestFailure } from '../requests/request';
import { LoggedIn } from './logged-in';
import { LogInPage } from './log-in-page';
import { useSession } from './use-session';

/** The console: the log-in, or its pages. */
export function App() {
  const control = useSession();
  const { session, api, failure, retry } = control;
  const [facts, setFacts] = useState<Facts>();
  const [factsFailure, setFactsFailure] = useState<RequestFailure>();
  const issuing = useIssuingState();

  const readFacts = async (): Promise<void> => {
    setFactsFailure(undefined);
    try {
      setFacts(await api.facts());
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
  };

  if (session === null) return <LogInPage reason={control.reason} onLogIn={control.logIn} />;
  const lost = failure ?? factsFailure;
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
  return <LoggedIn api={api} facts={facts} session={session} issuing={issuing} onLogOut={logOut} />;
}
