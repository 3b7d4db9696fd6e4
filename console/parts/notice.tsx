import type { ComponentChildren } from 'preact';
import type { RequestFailure } from '../requests/request';
import { ShownText } from './shown-text';
import { StateMark, type Tone } from './state-mark';

const WORDS: Record<Tone, string> = { good: 'Done', wait: 'Note', bad: 'Problem', plain: 'Note' };

interface Props {
  tone: Tone;
  /** Replaces the word of the tone. */
  word?: string;
  children: ComponentChildren;
}

/** A message. Failures interrupt those who hear the page; others wait. */
export function Notice({ tone, word = WORDS[tone], children }: Props) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <StateMark tone={tone} word={word} />
      <div>{children}</div>
    </div>
  );
}

/** A refusal or a failure, with the code that the documentation explains. */
export function FailureNotice({
  failure,
  children,
}: {
  failure: RequestFailure;
  children?: ComponentChildren;
}) {
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
