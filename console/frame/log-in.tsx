import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Session } from '../../service/console/views';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { Field } from '../parts/fields';
import { createApi } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import { replaceAddress } from './address';
import { linkOf } from './route';

interface Props {
  /** Why somebody who was here has to log in. */
  reason: string | undefined;
  onLogIn: (key: string) => Promise<void>;
}

const HINT =
  'ADMIN_API_KEY of the service, or CONSOLE_READ_KEY to look only. A devnet prints a link that logs in.';

/** Asks for a key. It is sent to the service once and kept nowhere. */
export function LogInPage({ reason, onLogIn }: Props) {
  const [key, setKey] = useState('');
  const { isRunning, failure, run } = useAction();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Console';
    field.current?.focus();
  }, []);
  return (
    <main class="log-in">
      <h1>Console</h1>
      <p class="dim">Transferable document service</p>
      {reason !== undefined && (
        <div id="reason">
          <Notice tone="wait">{reason}</Notice>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(() => onLogIn(key));
        }}
      >
        <Field label="Key" hint={HINT}>
          {(control) => (
            <input
              {...control}
              aria-describedby={`reason ${control['aria-describedby']}`}
              ref={field}
              type="password"
              name="key"
              autocomplete="current-password"
              spellcheck={false}
              required
              value={key}
              onInput={({ currentTarget }) => setKey(currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit" class="main" aria-disabled={isRunning}>
          {isRunning ? 'Logging in …' : 'Log in'}
        </button>
      </form>
      <FailureNotice failure={failure} />
    </main>
  );
}

interface SessionState {
  /** Undefined: not known yet. Null: nobody is logged in. */
  session?: Session | null;
  /** Why somebody has to log in again. */
  reason?: string | undefined;
  /** Why the session is not known. */
  failure?: RequestFailure;
}

const ENDED = 'The session ended. Log in to go on.';

/** The session of this tab. A link that logs in is used once and removed from the address. */
export function useSession() {
  const [state, setState] = useState<SessionState>({});
  const isLoggedOut = useRef(false);
  isLoggedOut.current = state.session === null;
  const api = useMemo(
    () => createApi(() => setState((now) => (now.session ? { session: null, reason: ENDED } : now))),
    [],
  );

  const begin = async (): Promise<void> => {
    const link = linkOf(location.hash);
    if (link !== undefined) replaceAddress(location.pathname + link.href);
    let reason: string | undefined;
    try {
      if (link !== undefined) return setState({ session: await api.logIn({ link: link.token }) });
    } catch (error) {
      const failure = failureFrom(error);
      reason =
        failure.status === 401
          ? 'The link was used before, or is too old. Log in with a key or a new link.'
          : failure.message;
    }
    try {
      const session = await api.session();
      setState((now) => (session ? { session } : { session: null, reason: reason ?? now.reason }));
    } catch (error) {
      const failure = failureFrom(error);
      // A log-in page that is shown already stays.
      setState((now) => (now.session === null ? now : { failure }));
    }
  };

  useEffect(() => {
    void begin();
    const change = (): void => {
      if (linkOf(location.hash) !== undefined) void begin();
    };
    // Somebody may have logged in on another tab.
    const look = (): void => {
      if (document.visibilityState === 'visible' && isLoggedOut.current) void begin();
    };
    addEventListener('hashchange', change);
    addEventListener('focus', look);
    document.addEventListener('visibilitychange', look);
    return () => {
      removeEventListener('hashchange', change);
      removeEventListener('focus', look);
      document.removeEventListener('visibilitychange', look);
    };
  }, []);

  return {
    ...state,
    api,
    logIn: async (key: string): Promise<void> => setState({ session: await api.logIn({ key }) }),
    logOut: async (): Promise<void> => {
      await api.logOut();
      setState({ session: null });
    },
    retry: (): void => {
      setState({});
      void begin();
    },
  };
}
