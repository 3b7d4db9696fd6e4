interface Props {
  /** Null: not known now. */
  value: number | null;
  noun: string;
  plural?: string;
  after?: string;
  href?: string;
}

/** The number that a card is about. */
export function Figure({ value, noun, plural = `${noun}s`, after = '', href }: Props) {
  const words = `${value === 1 ? noun : plural} ${after}`;
  const content = (
    <>
      <span class="value">{value === null ? '–' : shortCount(value)}</span>{' '}
      {value === null ? `${plural}: not known now` : words}
    </>
  );
  return <p class="figure">{href === undefined ? content : <a href={href}>{content}</a>}</p>;
}

/** Millions are shortened: their last digits tell nothing, and move. */
function shortCount(value: number): string {
  return value.toLocaleString('en', value < 1_000_000 ? {} : { notation: 'compact' });
}
