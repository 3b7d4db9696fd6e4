import { useState } from 'preact/hooks';
import { escapedText } from '../text/visible-characters';
import { shortened } from '../text/shorten';
import { canCopy, CopyButton } from './copy-button';

interface Props {
  value: string;
  /** For the name of the copy button. */
  what: string;
  href?: string | undefined;
  /** The short form, if it has to differ from the usual one. */
  short?: string | undefined;
}

/** Long hex, shortened in the middle. The whole value is in its title, and can be copied, or else opened. */
export function Hex({ value, what, href, short = shortFormOf(value) }: Props) {
  const [isWhole, setWhole] = useState(false);
  const text = escapedText(isWhole ? value : short);
  const kind = isWhole || short === value ? 'whole' : 'short';
  return (
    <span class="hex">
      {href === undefined ? (
        <code class={kind} title={escapedText(value)}>
          {text}
        </code>
      ) : (
        <a href={href} title={escapedText(value)}>
          <code class={kind}>{text}</code>
        </a>
      )}
      <CopyButton value={value} what={what} />
      {!canCopy && short !== value && (
        <button
          type="button"
          class="link"
          aria-expanded={isWhole}
          aria-label={`Show the whole ${what}`}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? 'short' : 'whole'}
        </button>
      )}
    </span>
  );
}

/** Ids are seen in lists more often than addresses and hashes: they keep more digits. */
function shortFormOf(value: string): string {
  return value.startsWith('0x') ? shortened(value) : shortened(value, { start: 8, end: 6 });
}
