import { absoluteTime } from '../text/relative-time';

interface Props {
  isLost: boolean;
  /** When the service was last heard of. */
  since: number | undefined;
  onRetry: () => void;
}

/** Says that the page may be old. It lies over the page, so that nothing moves. */
export function ConnectionBanner({ isLost, since, onRetry }: Props) {
  return (
    <div role="status" class="connection">
      {isLost && (
        <div class="banner">
          <p>
            <b>The service does not answer.</b>{' '}
            {since === undefined
              ? 'The page'
              : `The page shows what was known at ${absoluteTime(since)}, and`}{' '}
            connects again by itself.
          </p>
          <button type="button" onClick={onRetry}>
            Connect now
          </button>
        </div>
      )}
    </div>
  );
}
