import type { IssuingProgress } from '../../service/console/views';
import { Notice } from '../parts/feedback';
import { ShownText } from '../parts/values';

const STEPS = ['signed', 'submitted', 'mined', 'final'] as const;

interface Props {
  progress: IssuingProgress;
  confirmations: number;
}

/** Signed → submitted → mined → final. */
export function ProgressLine({ progress: { state, confirmedBlocks, failure }, confirmations }: Props) {
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
          ? `Mined, with ${Math.min(confirmedBlocks, confirmations)} of ${confirmations} confirmations.`
          : WORDS[state]}
      </p>
    </>
  );
}

const WORDS: Record<(typeof STEPS)[number], string> = {
  signed: 'The document is signed and stored. Its mint is sent next.',
  submitted: 'The mint is sent. The network makes a block with it.',
  mined: 'The token exists.',
  final: 'The token exists. Its block has the confirmations that the operator set.',
};
