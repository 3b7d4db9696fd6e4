import type { ComponentChildren } from 'preact';
import type { Loaded } from '../requests/use-loaded';
import { FailureNotice } from './notice';

interface Props<T> {
  loaded: Loaded<T>;
  children: (data: T) => ComponentChildren;
}

/** Data when it is there. It stays while it cannot be read again. */
export function WhenLoaded<T>({ loaded: { data, failure, reload }, children }: Props<T>) {
  return (
    <>
      {failure && failure.code !== 'CONSOLE_SESSION_ENDED' && (
        <FailureNotice failure={failure}>
          <button type="button" onClick={reload}>
            Try again
          </button>
        </FailureNotice>
      )}
      {data === undefined ? !failure && <p class="dim loading">Reading …</p> : children(data)}
    </>
  );
}
