import { useLayoutEffect, useRef } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { FailureNotice, Notice } from '../parts/feedback';
import type { RequestFailure } from '../requests/request';

/** While a document is sent, and when it is not known whether it arrived. */
export function SendingPanel() {
  const failure = useConsole().issuing.submission?.failure;
  const panel = useRef<HTMLDivElement>(null);
  // The form has the focus no more while it is locked.
  useLayoutEffect(() => panel.current?.focus(), [failure]);
  return (
    <div ref={panel} tabIndex={-1}>
      {failure ? (
        <Uncertain failure={failure} />
      ) : (
        <Notice tone="plain" word="Sending">
          The service signs and stores the document.
        </Notice>
      )}
    </div>
  );
}

function Uncertain({ failure }: { failure: RequestFailure }) {
  const { api, issuing } = useConsole();
  return (
    <FailureNotice failure={failure}>
      <p>The document may have been issued. Trying again cannot issue it twice: the request is the same.</p>
      <p class="buttons">
        <button type="button" class="main" onClick={() => void issuing.sendAgain(api)}>
          Try again
        </button>
        <button type="button" onClick={issuing.edit}>
          Change the document
        </button>
      </p>
      <p class="dim">
        A changed document gets a token of its own. An unchanged document is not issued twice.
      </p>
    </FailureNotice>
  );
}
