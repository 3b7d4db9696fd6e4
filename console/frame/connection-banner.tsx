import { absoluteTime } from '../text/words';

interface Props {
  /** When it was noticed, by the service's clock; undefined while the service answers. */
  lostAt: number | undefined;
  onRetry: () => void;
}

/** Says that the page may be old. */
export function ConnectionBanner({ lostAt, onRetry }: Props) {
  return (
    <div role="status" class="connection">
      {lostAt !== undefined && (
        <div class="banner">
          <p>
            <b>The service does not answer.</b> It was noticed at {absoluteTime(lostAt)}. The page shows what
            was known before, and connects again by itself.
          </p>
          <button type="button" onClick={onRetry}>
            Connect now
          </button>
        </div>
      )}
    </div>
  );
}
