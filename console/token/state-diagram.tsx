import type { TokenView } from '../../service/console/views';

const STATES: readonly { state: TokenView['state']; arrow: string; words: string }[] = [
  { state: 'not minted', arrow: '', words: '' },
  { state: 'in escrow', arrow: '→', words: 'mint' },
  { state: 'returned to issuer', arrow: '⇄', words: 'return, restore' },
  { state: 'shredded', arrow: '→', words: 'shred' },
];

/** The states of a token, with the one that it is in. */
export function StateDiagram({ state }: { state: TokenView['state'] }) {
  return (
    <ol class="diagram" aria-label="States of a token">
      {STATES.map((step) => (
        <li key={step.state}>
          {step.arrow !== '' && (
            <span class="arrow">
              <span aria-hidden="true">{step.arrow}</span>
              <span>{step.words}</span>
            </span>
          )}
          <span class="box" aria-current={step.state === state ? 'true' : undefined}>
            {step.state}
          </span>
        </li>
      ))}
    </ol>
  );
}
