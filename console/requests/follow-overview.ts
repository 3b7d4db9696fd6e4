import type { Overview } from '../../service/console/views';
import { pauseAfter } from './pause-after';
import { failureFrom } from './request';

interface Listener {
  overview: (overview: Overview) => void;
  /** Events come, for the first time or again. */
  connected: () => void;
  /** The page may show old data until it is connected again. */
  lost: () => void;
}

/** The service sends an event at least every 15 seconds. A connection may die without an error. */
const SILENCE_MS = 40_000;

/** A followed overview. `retry` does not wait for the next attempt. */
export interface Following {
  stop: () => void;
  retry: () => void;
}

/**
 * Follows the overview by server-sent events while the tab is visible: a browser allows six connections to a
 * host, and hidden tabs would hold them. It asks for the overview before, which also tells whether the
 * session ended, and shows something if a proxy holds the events back.
 */
export function followOverview(read: () => Promise<Overview>, listener: Listener): Following {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let stopped = false;

  /** Connects again if no event comes. */
  const watch = (): void => {
    clearTimeout(timer);
    timer = setTimeout(again, SILENCE_MS);
  };
  const close = (): void => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    close();
    const opened = new EventSource('/console/api/stream');
    let isFirst = true;
    source = opened;
    watch();
    opened.addEventListener('alive', watch);
    opened.addEventListener('overview', ({ data }: MessageEvent<string>) => {
      watch();
      failures = 0;
      listener.overview(JSON.parse(data) as Overview);
      if (isFirst) listener.connected();
      isFirst = false;
    });
    opened.addEventListener('end', again);
    opened.addEventListener('error', again);
  };
  const again = (): void => {
    close();
    // A service that restarts is back before anybody has to know.
    if (failures >= 2) listener.lost();
    timer = setTimeout(() => void check(), pauseAfter(failures++));
  };
  const isUnwanted = (): boolean => stopped || document.visibilityState === 'hidden';
  const check = async (): Promise<void> => {
    try {
      const overview = await read();
      if (isUnwanted()) return;
      listener.overview(overview);
      open();
    } catch (error) {
      if (isUnwanted() || failureFrom(error).code === 'CONSOLE_SESSION_ENDED') return;
      listener.lost();
      again();
    }
  };
  const change = (): void => {
    if (document.visibilityState === 'hidden') close();
    else void check();
  };

  document.addEventListener('visibilitychange', change);
  change();
  return {
    stop: () => {
      stopped = true;
      document.removeEventListener('visibilitychange', change);
      close();
    },
    retry: () => {
      close();
      void check();
    },
  };
}
