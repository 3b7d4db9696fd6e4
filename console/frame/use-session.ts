import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Session } from '../../service/console/views';
import { createApi, type Api } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import { linkOf } from './route';

/** The session of the tab. `undefined`: not known yet; null: nobody is logged in. */
interface SessionState {
  session: Session | null | undefined;
  /** Why somebody has to log in again, or why the session is not known. */
  reason: string | undefined;
  failure: RequestFailure | undefined;
}

export interface SessionControl extends SessionState {
  api: Api;
  logIn: (key: string) => Promise<void>;
  logOut: () => Promise<void>;
  retry: () => void;
}

const UNKNOWN: SessionState = { session: undefined, reason: undefined, failure: undefined };
const ENDED = 'The session ended. Log in to go on.';

/** The session of this tab. A link that logs in is used once and removed from the address. */
export function useSession(): SessionControl {
  const [state, setState] = useState(UNKNOWN);
  const isLoggedOut = useRef(false);
  isLoggedOut.current = state.session === null;
  const enter = (session: Session): void => setState({ ...UNKNOWN, session });
  const leave = (reason?: string): void => setState({ ...UNKNOWN, session: null, reason });
  const api = useMemo(
    () =>
      createApi(() => setState((now) => (now.session ? { ...UNKNOWN, session: null, reason: ENDED } : now))),
    [],
  );

  const begin = async (): Promise<void> => {
    const link = linkOf(location.hash);
    if (link !== undefined) {
      history.replaceState(null, '', location.pathname + link.href);
      // The browser tells of no change that a script made.
      dispatchEvent(new HashChangeEvent('hashchange'));
    }
    let reason: string | undefined;
    try {
      if (link !== undefined) return enter(await api.logIn({ link: link.token }));
    } catch (error) {
      const failure = failureFrom(error);
      reason =
        failure.status === 401
          ? 'The link was used before, or is too old. Log in with a key or a new link.'
          : failure.message;
    }
    try {
      const session = await api.session();
      if (session) enter(session);
      else setState((now) => ({ ...UNKNOWN, session: null, reason: reason ?? now.reason }));
    } catch (error) {
      const failure = failureFrom(error);
      // Somebody who is about to log in goes on with that.
      setState((now) => (now.session === null ? now : { ...UNKNOWN, failure }));
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
    logIn: async (key) => enter(await api.logIn({ key })),
    logOut: async () => {
      await api.logOut();
      leave();
    },
    retry: () => {
      setState(UNKNOWN);
      void begin();
    },
  };
}
