import { useEffect, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { absoluteTime, relativeTime } from '../text/relative-time';

const TICK_MS = 1000;

/** The service's time, once a second. */
export function useNow(): number {
  const { clockOffset } = useConsole();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return now + clockOffset;
}

interface Props {
  at: number | null;
  /** It has happened: the clock of a chain may be ahead. */
  isPast?: boolean;
}

/** A time as seen from now. Its title is the time itself. */
export function When({ at, isPast = false }: Props) {
  const now = useNow();
  if (at === null) return <span class="dim">—</span>;
  const absolute = absoluteTime(at);
  return (
    <time dateTime={absolute.replace(' ', 'T').replace(' UTC', 'Z')} title={absolute}>
      {relativeTime(isPast ? Math.min(at, now) : at, now)}
    </time>
  );
}
