/** How something is, as a colour. */
export type Tone = 'good' | 'wait' | 'bad' | 'plain';

const SHAPES = {
  check: 'M3.5 8.5l3 3 6-7',
  clock: 'M8 3v5.2l3.2 2',
  cross: 'M4.5 4.5l7 7m0-7l-7 7',
  dash: 'M4.5 8h7',
  pause: 'M6 4.5v7m4-7v7',
  question: 'M5.5 5.8a2.5 2.5 0 1 1 3.7 2.1c-.8.5-1.2.9-1.2 1.8M8 12.7v.1',
  warning: 'M8 3v6m0 3.3v.1',
} as const;

export type Shape = keyof typeof SHAPES;

const OF_TONE: Record<Tone, Shape> = { good: 'check', wait: 'warning', bad: 'cross', plain: 'dash' };

interface Props {
  tone: Tone;
  word: string;
  /** For those who do not see colours. */
  shape?: Shape;
}

/** A state in words, with its colour and its shape. */
export function StateMark({ tone, word, shape = OF_TONE[tone] }: Props) {
  return (
    <span class={`state ${tone}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[shape]} />
      </svg>
      <span>{word}</span>
    </span>
  );
}
