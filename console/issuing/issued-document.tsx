import type { IssuingProgress } from '../../service/answers/views';
import type { Facts } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { ShownText } from '../parts/values';
import { countOf, jsonFileName } from '../text/words';

const STEPS = ['signed', 'submitted', 'mined', 'final'] as const;

const WORDS: Record<(typeof STEPS)[number], string> = {
  signed: 'The document is signed and stored. Its mint is sent next.',
  submitted: 'The mint is sent. The network makes a block with it.',
  mined: 'The token exists.',
  final: 'The token exists. Its block is final.',
};

/** How far a mint is: signed → submitted → mined → final. */
export function ProgressLine({
  progress: { state, confirmedBlocks, failure },
}: {
  progress: IssuingProgress;
}) {
  const { confirmations } = useConsole().facts;
  if (state === 'failed')
    return (
      <Notice tone="bad" word="Failed">
        <p>
          The token will never exist. <ShownText text={failure?.message ?? ''} />{' '}
          <code class="dim">{failure?.code}</code>
        </p>
      </Notice>
    );
  const reached = STEPS.indexOf(state);
  return (
    <>
      <ol class="steps" aria-label="Progress of the mint">
        {STEPS.map((step, index) => (
          <li
            key={step}
            class={index <= reached ? 'done' : undefined}
            aria-current={index === reached ? 'step' : undefined}
          >
            {step}
          </li>
        ))}
      </ol>
      <p class="dim" role="status">
        {state === 'mined' && confirmedBlocks !== null
          ? minedWith(confirmedBlocks, confirmations)
          : WORDS[state]}
      </p>
    </>
  );
}

function minedWith(blocks: number, confirmations: Facts['confirmations']): string {
  if (typeof confirmations === 'number')
    return `Mined, with ${Math.min(blocks, confirmations)} of ${confirmations} confirmations.`;
  const onTop = countOf(blocks, 'block');
  return `Mined, with ${onTop} on top. It is final once the chain calls its block ${confirmations}.`;
}

interface DownloadProps {
  tokenId: string;
  isMain?: boolean;
  isDisabled?: boolean;
}

/** Saves the credential of a token that this service issued. */
export function DownloadButton({ tokenId, isMain = false, isDisabled = false }: DownloadProps) {
  const { api } = useConsole();
  const { run, isRunning, failure } = useAction();
  const download = async (): Promise<void> => {
    const { signedW3CDocument } = await api.document(tokenId);
    const { blNumber } = signedW3CDocument.credentialSubject;
    saveJson(jsonFileName(typeof blNumber === 'string' ? blNumber : tokenId), signedW3CDocument);
  };
  return (
    <>
      <button
        type="button"
        class={isMain ? 'main' : undefined}
        disabled={isDisabled}
        aria-disabled={isRunning}
        onClick={() => run(download)}
      >
        Download the credential
      </button>
      <FailureNotice failure={failure} />
    </>
  );
}

/** Saves a value as a file, as the browser saves downloads. */
export function saveJson(name: string, value: unknown): void {
  const blob = new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' });
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser may begin to read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
