import { useState } from 'preact/hooks';
import { beginningOf, segmentsOf } from '../text/visible-characters';

const LONGEST = 600;

interface Props {
  text: string;
  /** Several lines of a fixed-width font, with this name. */
  block?: string;
  /** Characters that are shown at first. */
  longest?: number;
}

/** A stranger's text. It cannot change the text around it; characters that nobody would see are escaped. */
export function ShownText({ text, block, longest = LONGEST }: Props) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > longest;
  const part = isLong && !isWhole ? beginningOf(text, longest) : text;
  const content = segmentsOf(part, { keepLines: block !== undefined }).map(
    ({ text: segment, isEscape }, index) =>
      isEscape ? (
        <span key={index} class="escape">
          {segment}
        </span>
      ) : (
        segment
      ),
  );
  const more = isLong && (
    <button type="button" class="link" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
      {isWhole ? 'Show less' : `Show all ${text.length.toLocaleString('en')} characters`}
    </button>
  );
  if (block !== undefined)
    return (
      <div class="block-text">
        <pre tabIndex={0} dir="ltr" role="group" aria-label={block}>
          {content}
          {part !== text && '…'}
        </pre>
        {more}
      </div>
    );
  return (
    <>
      <bdi class="shown-text" dir="auto">
        {content}
        {part !== text && '…'}
      </bdi>
      {isLong && ' '}
      {more}
    </>
  );
}
