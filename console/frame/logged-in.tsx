import type { ComponentType, RefObject } from 'preact';
import { useCallback, useEffect, useErrorBoundary, useMemo, useRef, useState } from 'preact/hooks';
import type { Overview } from '../../service/console/views';
import { DeliveriesPage } from '../deliveries/deliveries-page';
import { EventPage } from '../deliveries/event-page';
import { IssuePage } from '../issuing/issue-page';
import { OverviewPage } from '../overview/overview-page';
import { KeysPage } from '../keys/keys-page';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { followOverview, type Following } from '../requests/follow-overview';
import { failureFrom } from '../requests/request';
import { SubscriptionsPage } from '../subscriptions/subscriptions-page';
import { ShownText } from '../parts/values';
import { escapedText } from '../text/visible-characters';
import { absoluteTime, capitalised, withShortHex } from '../text/words';
import { readOwnTokens, TokenPage } from '../token/token-page';
import { VerifyPage } from '../verifying/verify-page';
import { useRoute } from './address';
import { ConsoleProvider, useConsole, type ConsoleContext } from './console-context';
import { hrefOf, PAGES, pagesOf, type PageName, type Route } from './route';

/** No overview tells a holder's pages that something moved: they read again after this time. */
const HOLDERS_EVERY_MS = 10_000;

interface Props {
  known: Omit<ConsoleContext, 'overview' | 'isLost' | 'revision' | 'clockOffset' | 'announce' | 'readTokens'>;
  /** Whether the service has another version than the page. */
  isUpdated: boolean;
  /** Whether somebody logged in on this page: the field that had the focus is gone. */
  wasAsked: boolean;
  /** The service answers again, after it was lost or the page was hidden. */
  onReturn: () => void;
  onLogOut: () => Promise<void>;
}

/** The pages, their navigation, and what keeps them up to date. */
export function LoggedIn({ known, isUpdated, wasAsked, onReturn, onLogOut }: Props) {
  const { api, session } = known;
  const asked = useRoute();
  const isShown = asked.page === 'events' || pagesOf(session).some(({ name }) => name === asked.page);
  const route: Route = isShown ? asked : { page: 'token', id: '', query: {} };
  const [overview, setOverview] = useState<Overview>();
  /** When it was noticed that the service is lost, by this clock. */
  const [lostAt, setLostAt] = useState<number>();
  const [returns, setReturns] = useState(0);
  const [greatestOffset, setGreatestOffset] = useState(-Infinity);
  const clockOffset = Number.isFinite(greatestOffset) ? greatestOffset : 0;
  const [announcement, setAnnouncement] = useState({ text: '', count: 0 });
  const following = useRef<Following>(undefined);

  useEffect(() => {
    let isFollowed = false;
    following.current = followOverview(api.overview, {
      overview: (latest) => {
        setOverview(latest);
        // The time on the way makes the difference of the clocks too small: the greatest one is the best.
        setGreatestOffset((before) => Math.max(before, latest.at - Date.now()));
      },
      connected: () => {
        setLostAt(undefined);
        // A service that restarted may have another version and other settings.
        if (isFollowed) {
          setReturns((count) => count + 1);
          onReturn();
        }
        isFollowed = true;
      },
      lost: () => setLostAt((before) => before ?? Date.now()),
    });
    return () => following.current?.stop();
  }, [api]);

  useEffect(() => {
    if (!session.holder) return undefined;
    const tick = (): unknown => document.visibilityState === 'visible' && setReturns((count) => count + 1);
    const timer = setInterval(tick, HOLDERS_EVERY_MS);
    return () => clearInterval(timer);
  }, [session]);

  // A question that is on its way while the session ends would be refused, as if the session had run out.
  const logOut = async (): Promise<void> => {
    following.current?.pause();
    try {
      await onLogOut();
    } catch (error) {
      following.current?.retry();
      throw error;
    }
  };

  const frame = useRef<HTMLDivElement>(null);
  const main = useRef<HTMLElement>(null);
  useKeptFocus(frame, main);
  const pageKey = `${route.page}/${route.id}`;
  const isFirst = useRef(!wasAsked);
  useEffect(() => {
    // A screen reader says which page it is, and the keyboard goes on from its beginning.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    setAnnouncement(({ count }) => ({ text: '', count }));
  }, [pageKey]);
  useEffect(() => scrollTo(0, 0), [pageKey, route.query.id]);

  // The count is a key: a screen reader says the same text again.
  const announce = useCallback(
    (text: string) => setAnnouncement(({ count }) => ({ text, count: count + 1 })),
    [],
  );
  const readTokens = useMemo(() => readOwnTokens(api), [api]);
  const revision = `${overview?.revision ?? ''} ${returns}`;
  const isLost = lostAt !== undefined;
  const current = { ...known, overview, isLost, revision, clockOffset, announce, readTokens };
  return (
    <ConsoleProvider value={current}>
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <div class="unseen" role="status">
        <span key={announcement.count}>{announcement.text}</span>
      </div>
      <div class="frame" ref={frame}>
        <Navigation current={route.page} onLogOut={logOut} />
        <div class="column">
          <div role="status" class="connection">
            {lostAt !== undefined && (
              <div class="banner">
                <p>
                  <b>The service does not answer.</b> It was noticed at {absoluteTime(lostAt + clockOffset)}.
                  The page shows what was known before, and connects again by itself.
                </p>
                <button type="button" onClick={() => following.current?.retry()}>
                  Connect now
                </button>
              </div>
            )}
          </div>
          <main id="content" ref={main} tabIndex={-1}>
            {isUpdated && <Notice tone="wait">The service was updated. Load the page again.</Notice>}
            <CurrentPage key={pageKey} route={route} />
          </main>
        </div>
      </div>
    </ConsoleProvider>
  );
}

/** The page of the address, or the error that it threw. */
function CurrentPage({ route }: { route: Route }) {
  const { page, id, query } = route;
  useEffect(() => {
    const title = PAGES.find(({ name }) => name === page)?.title ?? 'Event';
    // Eight digits of an id tell one tab from another.
    const digits = (id || (query.id ?? '')).slice(0, 8);
    document.title = `${`${title} ${digits}`.trim()} – Console`;
  }, [page, id, query.id]);
  const error: unknown = useErrorBoundary()[0];
  if (error !== undefined) return <FailureNotice failure={failureFrom(error)} />;
  const Page = SHOWN[page];
  return <Page id={id} query={query} />;
}

const SHOWN: Readonly<Record<PageName, ComponentType<Pick<Route, 'id' | 'query'>>>> = {
  overview: OverviewPage,
  issue: IssuePage,
  token: TokenPage,
  deliveries: DeliveriesPage,
  events: EventPage,
  subscriptions: SubscriptionsPage,
  keys: KeysPage,
  verify: VerifyPage,
};

interface NavigationProps {
  current: PageName;
  onLogOut: () => Promise<void>;
}

/** The pages, the network, and who is logged in. */
function Navigation({ current, onLogOut }: NavigationProps) {
  const { facts, session, overview } = useConsole();
  const { holder } = session;
  const { isRunning, failure, run } = useAction();
  const shown = current === 'events' ? 'deliveries' : current;
  const problems = overview?.problems.length ?? 0;
  const isError = overview?.problems.some(({ severity }) => severity === 'error');
  return (
    <header class="navigation">
      <div class="brand">
        <b>Console</b>
        <span class="dim">{facts.network.name}</span>
      </div>
      <nav aria-label="Pages">
        <ul>
          {pagesOf(session).map(({ name, title }) => (
            <li key={name}>
              <a href={hrefOf(name)} aria-current={name === shown ? 'page' : undefined}>
                {title}
                {name === 'overview' && problems > 0 && (
                  <span class={`count ${isError ? 'bad' : 'wait'}`}>
                    {problems}
                    <span class="unseen"> {problems === 1 ? 'problem' : 'problems'}</span>
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="who">
        <span class="dim" title={holder && escapedText(holder.name)}>
          {holder ? <ShownText text={withShortHex(holder.name)} /> : capitalised(session.role)}
        </span>
        {holder && <span class="dim">{`Until ${absoluteTime(session.expiresAt)}`}</span>}
        <button type="button" aria-disabled={isRunning} onClick={() => run(onLogOut)}>
          Log out
        </button>
        <FailureNotice failure={failure} />
        <span class="dim version">Version {facts.version}</span>
      </div>
    </header>
  );
}

/**
 * Keeps the place of those who use the keyboard: when the element with the focus vanishes, the nearest group
 * around it that can have the focus gets it, or else `main`.
 */
function useKeptFocus(root: RefObject<HTMLElement | null>, main: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = root;
    if (!current) return undefined;
    let last: EventTarget | null = null;
    const note = ({ target }: FocusEvent): void => {
      last = target;
    };
    // A click beside every control takes the focus away on purpose.
    const forget = ({ target }: PointerEvent): void => {
      const isInside = last instanceof Element && target instanceof Node && last.contains(target);
      if (!isInside) last = null;
    };
    const observer = new MutationObserver((changes) => {
      if (!(last instanceof Element) || last.isConnected || document.activeElement !== document.body) return;
      const vanished = last;
      const around = changes.find(({ removedNodes }) =>
        [...removedNodes].some((node) => node.contains(vanished)),
      )?.target;
      last = null;
      const group = around instanceof Element ? around.closest<HTMLElement>('[tabindex="-1"]') : null;
      (group?.isConnected ? group : main.current)?.focus({ preventScroll: true });
    });
    current.addEventListener('focusin', note);
    current.addEventListener('pointerdown', forget);
    observer.observe(current, { childList: true, subtree: true });
    return () => {
      current.removeEventListener('focusin', note);
      current.removeEventListener('pointerdown', forget);
      observer.disconnect();
    };
  }, [root, main]);
}
