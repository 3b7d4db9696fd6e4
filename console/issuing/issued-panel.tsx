import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { Hex, ShownText } from '../parts/values';
import { WhenLoaded } from '../parts/feedback';
import { useLoaded } from '../requests/use-loaded';
import { DownloadButton } from './download-button';
import { ProgressLine } from './progress-line';

/** Blocks come without a change that the service would tell. */
const POLL_MS = 2000;

interface Props {
  tokenId: string;
  blNumber: string;
}

/** How far an accepted document is, and the document itself. */
export function IssuedPanel({ tokenId, blNumber }: Props) {
  const { api, facts, issuing } = useConsole();
  const loaded = useLoaded(`progress ${tokenId}`, (signal) => api.progress(tokenId, signal));
  const { reload } = loaded;
  const state = loaded.data?.state ?? 'signed';
  const isSettled = state === 'final' || state === 'failed';
  useEffect(() => {
    if (isSettled) return undefined;
    const timer = setInterval(reload, POLL_MS);
    return () => clearInterval(timer);
  }, [isSettled, reload]);

  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // The button that had the focus is gone with the form.
    if (document.activeElement === document.body) heading.current?.focus();
  }, []);

  const isMined = state === 'mined' || state === 'final';
  return (
    <section class="card" aria-labelledby="issued">
      <h2 id="issued" ref={heading} tabIndex={-1}>
        Bill of Lading <ShownText text={blNumber} longest={80} />
      </h2>
      <WhenLoaded loaded={loaded}>
        {(progress) => <ProgressLine progress={progress} confirmations={facts.confirmations} />}
      </WhenLoaded>
      <p>
        Token <Hex value={tokenId} what="token id" href={hrefOf('token', { id: tokenId })} />
      </p>
      <p class="buttons">
        <DownloadButton tokenId={tokenId} isMain isDisabled={!isMined} />
        <a href={hrefOf('token', { id: tokenId })}>Show the token</a>
        <button type="button" onClick={issuing.restart}>
          Issue another document
        </button>
      </p>
      {!isMined && state !== 'failed' && (
        <p class="dim">The credential can be downloaded when its mint is mined.</p>
      )}
    </section>
  );
}
