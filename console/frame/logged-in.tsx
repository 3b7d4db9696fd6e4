import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Overview } from '../../service/console/views';
import { Notice } from '../parts/feedback';
import { followOverview, type Following } from '../requests/follow-overview';
import { ConnectionBanner } from './connection-banner';
import { ConsoleProvider, type ConsoleContext } from './console-context';
import { Navigation } from './navigation';
import { CurrentPage } from './current-page';
import { useKeptFocus } from './use-kept-focus';
import { useRoute } from './use-route';

interface Props {
  known: Omit<ConsoleContext, 'overview' | 'isLost' | 'revision' | 'clockOffset' | 'announce'>;
  /** Whether the service has another version than the page. */
  isUpdated: boolean;
  /** Whether somebody logged in on this page: the field that had the focus is gone. */
  wasAsked: boolean;
  /** After each connection but the first. */
  onReturn: () => void;
  onLogOut: () => Promise<void>;
}

/** The pages, their navigation, and what keeps them up to date. */
export function LoggedIn({ known, isUpdated, wasAsked, onReturn, onLogOut }: Props) {
  const { api } = known;
  const returned = useRef(onReturn);
  returned.current = onReturn;
  const route = useRoute();
  const [overview, setOverview] = useState<Overview>();
  /** When it was noticed that the service is lost. */
  const [lostAt, setLostAt] = useState<number>();
  const [returns, setReturns] = useState(0);
  const [clockOffset, setClockOffset] = useState<number>();
  const [announcement, setAnnouncement] = useState({ text: '', count: 0 });
  const following = useRef<Following>(undefined);

  useEffect(() => {
    let isFollowed = false;
    following.current = followOverview(api.overview, {
      overview: (latest) => {
        setOverview(latest);
        // An overview may have waited on its way: the youngest one tells the difference of the clocks.
        setClockOffset((known = -Infinity) => Math.max(known, latest.at - Date.now()));
      },
      connected: () => {
        setLostAt(undefined);
        // A service that restarted may have another version and other settings.
        if (isFollowed) {
          setReturns((count) => count + 1);
          returned.current();
        }
        isFollowed = true;
      },
      lost: () => setLostAt((before) => before ?? Date.now()),
    });
    return () => following.current?.stop();
  }, [api]);

  const frame = useRef<HTMLDivElement>(null);
  const main = useRef<HTMLElement>(null);
  useKeptFocus(frame, main);
  const pageKey = `${route.page}/${route.id}`;
  const isFirst = useRef(!wasAsked);
  useEffect(() => {
    // Those who hear the page are told which one it is.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    setAnnouncement(({ count }) => ({ text: '', count }));
  }, [pageKey]);
  useEffect(() => scrollTo(0, 0), [pageKey, route.query.id]);

  // The same text twice is told twice.
  const announce = useCallback(
    (text: string) => setAnnouncement(({ count }) => ({ text, count: count + 1 })),
    [],
  );
  const revision = `${overview?.revision ?? ''} ${returns}`;
  const isLost = lostAt !== undefined;
  const current = { ...known, overview, isLost, revision, clockOffset: clockOffset ?? 0, announce };
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
        <Navigation current={route.page} onLogOut={onLogOut} />
        <div class="column">
          <ConnectionBanner
            lostAt={lostAt === undefined ? undefined : lostAt + (clockOffset ?? 0)}
            onRetry={() => following.current?.retry()}
          />
          <main id="content" ref={main} tabIndex={-1}>
            {isUpdated && <Notice tone="wait">The service was updated. Load the page again.</Notice>}
            <CurrentPage key={pageKey} route={route} />
          </main>
        </div>
      </div>
    </ConsoleProvider>
  );
}
