import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { beginningOf, escapedText, segmentsOf } from '../text/visible-characters';
import { absoluteTime, accountName, relativeTime, shortened } from '../text/words';

interface HexProps {
  value: string;
  /** The noun in the name of its button. */
  what: string;
  href?: string | undefined;
  /** The short form, if it has to differ from the usual one. */
  short?: string | undefined;
}

/** Long hex, shortened in the middle. The whole value is in its title. It can be copied, or else expanded. */
export function Hex({ value, what, href, short = shortFormOf(value) }: HexProps) {
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

/** The button shows a check mark for this time. */
const COPIED_MS = 1500;

/** Browsers have a clipboard only on secure pages and on this machine. The types of the DOM do not say so. */
const clipboard = navigator.clipboard as Clipboard | undefined;

const canCopy = clipboard !== undefined;

/** Copies a value, where the browser can. */
export function CopyButton({ value, what }: { value: string; what: string }) {
  const { announce } = useConsole();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (!clipboard) return null;
  const copy = async (): Promise<void> => {
    try {
      await clipboard.writeText(value);
      setCopied(true);
      announce(`Copied the ${what}.`);
    } catch {
      announce(`The browser did not allow to copy the ${what}.`);
    }
  };
  return (
    <button
      type="button"
      class="copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {isCopied ? <path d="M3 8.5l3.2 3.2L13 5" /> : <path d="M5.5 5.5h7v8h-7zM3.5 10.5v-8h7" />}
      </svg>
    </button>
  );
}

/** The short forms of a page's addresses, where the usual ones would look alike. */
export const ShortForms = createContext<ReadonlyMap<string, string>>(new Map());

interface PartyProps {
  address: string | null | undefined;
  /** Within a sentence: without a button to copy it. */
  isPlain?: boolean;
}

/** An address, with its name if it is an account of the local node. */
export function Party({ address, isPlain = false }: PartyProps) {
  const names = useContext(ShortForms);
  const { accounts } = useConsole().facts;
  if (!address) return <span class="dim">nobody</span>;
  const name = accountName(address, accounts);
  const short = names.get(address) ?? shortened(address);
  return (
    <span class="party">
      {name !== undefined && <b>{name}</b>}
      {isPlain ? (
        <code title={address}>{short}</code>
      ) : (
        <Hex value={address} what={name === undefined ? 'address' : `address of ${name}`} short={short} />
      )}
    </span>
  );
}

interface TokenProps {
  id: string;
  /** `<chain id>:<address>`; without it the service looks in each registry that it follows. */
  registry?: string | undefined;
}

/** A token as a link to its page. */
export function TokenLink({ id, registry }: TokenProps) {
  return <Hex value={id} what="token id" href={hrefOf('token', { id, registry })} />;
}

/** A registry, written `<chain id>:<address>`. */
export function RegistryName({ registry }: { registry: string }) {
  const [chainId, address] = registry.split(':');
  if (address === undefined) return <Hex value={registry} what="registry" />;
  return (
    <>
      <Hex value={address} what="address of the registry" /> <span class="dim">chain {chainId}</span>
    </>
  );
}

/** The service's time, which moves on once a second. */
export function useNow(): number {
  const { clockOffset } = useConsole();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now + clockOffset;
}

interface WhenProps {
  at: number | null;
  /** Whether it has happened: a chain's clock may be ahead, and would put it into the future. */
  isPast?: boolean;
}

/** A time as seen from now. Its title is the time itself. */
export function When({ at, isPast = false }: WhenProps) {
  const now = useNow();
  if (at === null) return <span class="dim">—</span>;
  const absolute = absoluteTime(at);
  return (
    <time dateTime={absolute.replace(' ', 'T').replace(' UTC', 'Z')} title={absolute}>
      {relativeTime(isPast ? Math.min(at, now) : at, now)}
    </time>
  );
}

interface TextProps {
  text: string;
  /** The name of a text of several lines, which gets a fixed-width font. */
  block?: string;
  /** Characters that are shown at first. */
  longest?: number;
}

/** A stranger's text. It cannot reorder the text around it; characters that nobody would see are escaped. */
export function ShownText({ text, block, longest = 600 }: TextProps) {
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

/** The colour of a state, and its shape for those who do not see colours. */
export interface Mark {
  tone: Tone;
  shape?: keyof typeof SHAPES;
}

const OF_TONE = { good: 'check', wait: 'warning', bad: 'cross', plain: 'dash' } as const;

export function StateMark({ tone, word, shape = OF_TONE[tone] }: Mark & { word: string }) {
  return (
    <span class={`state ${tone}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[shape]} />
      </svg>
      <span>{word}</span>
    </span>
  );
}

export type FactsRow = readonly [name: string, value: ComponentChildren];

/** Names with their values, aligned. A row whose value is undefined, null or false is left out. */
export function FactsList({ rows }: { rows: readonly FactsRow[] }) {
  return (
    <dl class="facts">
      {rows.map(
        ([name, value]) =>
          (value ?? false) !== false && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
