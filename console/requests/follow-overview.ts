import type { Overview } from '../../service/console/views';
import type { TaggedOverview } from './api';
import { pauseAfter } from './pause-after';

interface Listener {
  overview: (overview: Overview) => void;
  /** The service answers: for the first time, or again after a failure or while the page was hidden. */
  connected: () => void;
  /** The page may show old data until it is connected again. */
  lost: () => void;
}

/** The service measures once a second, for all pages. */
const EVERY_MS = 1_000;

/** A followed overview. `retry` asks at once, also after a pause. */
export interface Following {
  stop: () => void;
  pause: () => void;
  retry: () => void;
}

/**
 * Asks for the overview each second while the tab is visible, and after growing pauses while the service does
 * not answer, or not this session: the page asks then who is logged in.
 *
 * @param read resolves to undefined if the overview with that ETag is still the present one. After the
 *   signal aborted, its answer is not used.
 */
export function followOverview(
  read: (etag: string | undefined, signal: AbortSignal) => Promise<TaggedOverview | undefined>,
  listener: Listener,
): Following {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let etag: string | undefined;
  let failures = 0;
  let isConnected = false;
  let wasConnected = false;
  let asked = new AbortController();

  const pause = (): void => {
    clearTimeout(timer);
    asked.abort();
  };
  const ask = async (): Promise<void> => {
    pause();
    const { signal } = (asked = new AbortController());
    try {
      const answer = await read(etag, signal);
      if (signal.aborted) return;
      failures = 0;
      if (answer) {
        etag = answer.etag;
        listener.overview(answer.overview);
      }
      if (!isConnected) listener.connected();
      isConnected = wasConnected = true;
      timer = setTimeout(() => void ask(), EVERY_MS);
    } catch {
      if (signal.aborted) return;
      // A service that restarts is back before anybody has to know.
      if (failures > 0 || !wasConnected) listener.lost();
      isConnected = false;
      timer = setTimeout(() => void ask(), pauseAfter(failures++));
    }
  };
  const change = (): void => {
    if (document.visibilityState === 'hidden') {
      pause();
      isConnected = false;
    } else void ask();
  };

  document.addEventListener('visibilitychange', change);
  change();
  return {
    stop: () => {
      document.removeEventListener('visibilitychange', change);
      pause();
    },
    pause,
    retry: () => void ask(),
  };
}
