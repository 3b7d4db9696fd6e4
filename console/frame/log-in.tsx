import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { WalletPlace } from '../../service/access/wallet-login';
import type { Session } from '../../service/console/views';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { Field } from '../parts/fields';
import { createApi, type Api } from '../requests/api';
import { failureFrom, type RequestFailure } from '../requests/request';
import { beginningOf, escapedText } from '../text/visible-characters';
import { replaceAddress } from './address';
import { linkOf } from './route';
import { keyOfWallet, type WalletProvider } from './wallet';

interface Props {
  /** Why somebody who was here has to log in. */
  reason: string | undefined;
  api: Api;
  /** Finds a key, and logs in with it unless somebody has logged in meanwhile. */
  onLogIn: (findKey: () => Promise<string>) => Promise<void>;
}

const HINT =
  'ADMIN_API_KEY, CONSOLE_READ_KEY to look only, or a key with a scope. A devnet prints a link that logs in.';

/** Asks for a key. It is sent to the service once and kept nowhere. */
export function LogInPage({ reason, api, onLogIn }: Props) {
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
          run(() => onLogIn(async () => key));
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
      <WalletButtons api={api} onLogIn={onLogIn} />
    </main>
  );
}

interface Wallet {
  info: { uuid: string; name: string };
  provider: WalletProvider;
}

/** The wallets of the browser that announce themselves (EIP-6963), or else the only one. */
function useWallets(): readonly Wallet[] {
  const [announced, setAnnounced] = useState<readonly Wallet[]>([]);
  useEffect(() => {
    const add = (event: Event): void => {
      const { detail } = event as CustomEvent<Wallet | null>;
      if (typeof detail?.info?.uuid !== 'string' || typeof detail.info.name !== 'string') return;
      setAnnounced((before) => [...before.filter(({ info }) => info.uuid !== detail.info.uuid), detail]);
    };
    addEventListener('eip6963:announceProvider', add);
    dispatchEvent(new Event('eip6963:requestProvider'));
    return () => removeEventListener('eip6963:announceProvider', add);
  }, []);
  const { ethereum: provider } = window as { ethereum?: WalletProvider };
  if (announced.length > 0 || !provider) return announced;
  return [{ info: { uuid: '', name: 'a wallet' }, provider }];
}

/** Buttons that log in with a wallet, if the browser has one and the service takes it. */
function WalletButtons({ api, onLogIn }: Pick<Props, 'api' | 'onLogIn'>) {
  const wallets = useWallets();
  const [place, setPlace] = useState<WalletPlace>();
  const hasWallet = wallets.length > 0;
  useEffect(() => {
    // Without an answer, keys log in.
    if (hasWallet) void api.walletPlace().then(setPlace, () => undefined);
  }, [hasWallet]);
  if (!hasWallet || !place) return null;
  return (
    <>
      {wallets.map(({ info, provider }) => (
        <WalletButton
          key={info.uuid}
          name={info.name}
          onClick={() => onLogIn(() => keyOfWallet(provider, place, location, api))}
        />
      ))}
    </>
  );
}

/** A wallet that never answers blocks no other one. */
function WalletButton({ name, onClick }: { name: string; onClick: () => Promise<void> }) {
  const { isRunning, failure, run } = useAction();
  return (
    <>
      <button type="button" aria-disabled={isRunning} onClick={() => run(onClick)}>
        Log in with {escapedText(beginningOf(name, LONGEST_NAME))}
      </button>
      <p role="status">{isRunning && 'Your wallet asks you: open it, and answer there.'}</p>
      <FailureNotice failure={failure} />
    </>
  );
}

/** An extension chooses its name. */
const LONGEST_NAME = 40;

export interface SessionState {
  /** Undefined: not known yet. Null: nobody is logged in. */
  session?: Session | null;
  /** The owner of the last session, unless it was logged out. */
  owner?: string | undefined;
  /** Why somebody has to log in again. */
  reason?: string | undefined;
  /** Why the session is not known. */
  failure?: RequestFailure;
}

const ENDED = 'The session ended. Log in to go on.';

/** The session of this tab. A link that logs in is used once and removed from the address. */
export function useSession() {
  const [state, setState] = useState<SessionState>({});
  const latest = useRef(state);
  const settle = (next: SessionState): void => {
    setState((latest.current = { owner: next.session?.owner ?? latest.current.owner, ...next }));
  };
  const api = useMemo(() => createApi(() => void begin(), state.owner), [state.owner]);

  const begin = async (): Promise<void> => {
    const link = linkOf(location.hash);
    if (link !== undefined) replaceAddress(location.pathname + link.href);
    let reason = latest.current.session ? ENDED : latest.current.reason;
    try {
      if (link !== undefined) return settle({ session: await api.logIn({ link: link.token }) });
    } catch (error) {
      const failure = failureFrom(error);
      reason =
        failure.status === 401
          ? 'The link was used before, or is too old. Log in with a key or a new link.'
          : failure.message;
    }
    const before = latest.current;
    try {
      const session = await api.session();
      const isSame = session && JSON.stringify(session) === JSON.stringify(before.session);
      // A log-in or log-out meanwhile is newer.
      if (isSame || latest.current.session !== before.session) return;
      settle(session ? { session } : { session: null, reason });
    } catch (error) {
      // A page that is shown already stays.
      if (latest.current === before && before.session === undefined) settle({ failure: failureFrom(error) });
    }
  };

  useEffect(() => {
    void begin();
    const change = (): void => {
      if (linkOf(location.hash) !== undefined) void begin();
    };
    // Somebody may have logged in on another tab.
    const look = (): void => {
      const isAsking = latest.current.session === undefined && !latest.current.failure;
      if (document.visibilityState === 'visible' && !isAsking) void begin();
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
    logIn: async (findKey: () => Promise<string>): Promise<void> => {
      const key = await findKey();
      // Somebody may have logged in while a wallet was asked.
      if (latest.current.session === null) settle({ session: await api.logIn({ key }) });
    },
    logOut: async (): Promise<void> => {
      await api.logOut();
      settle({ session: null, owner: undefined });
    },
    retry: (): void => {
      settle({});
      void begin();
    },
  };
}
