import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { RequestFailure } from '../requests/request';
import { useAnnouncer } from '../frame/console-context';
import { ShownText } from './shown-text';
import { StateMark, type Tone } from './state-mark';

const WORDS: Record<Tone, string> = { good: 'Done', wait: 'Note', bad: 'Problem', plain: 'Note' };

interface Props {
  tone: Tone;
  /** Replaces the word of the tone. */
  word?: string;
  /** Announced instead of the whole text, if that is not for everybody's ears. */
  spoken?: string;
  children: ComponentChildren;
}

/** A message. Failures interrupt those who hear the page; others are announced when they appear. */
export function Notice({ tone, word = WORDS[tone], spoken, children }: Props) {
  const { announce } = useAnnouncer();
  const box = useRef<HTMLDivElement>(null);
  const told = useRef('');
  useEffect(() => {
    const text = spoken ?? box.current?.innerText ?? '';
    if (tone !== 'bad' && text !== told.current) announce(text);
    told.current = text;
  });
  return (
    <div ref={box} class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <StateMark tone={tone} word={word} />
      <div>{children}</div>
    </div>
  );
}

interface FailureProps {
  failure: RequestFailure | undefined;
  children?: ComponentChildren;
}

/** A refusal or a failure, if there is one, with the code that the documentation explains. */
export function FailureNotice({ failure, children }: FailureProps) {
  if (!failure) return null;
  return (
    <Notice tone="bad">
      <p>
        <ShownText text={failure.message} /> <code class="dim">{failure.code}</code>
      </p>
      {children}
    </Notice>
  );
}

/** Why a page of a reader has no buttons that change something. */
export function ReaderNote({ what }: { what: string }) {
  return <p class="note">You are logged in to look only: {what} needs ADMIN_API_KEY.</p>;
}
