import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useAnnouncer, useConsole, useMayChange } from '../frame/console-context';
import { failureFrom, type RequestFailure } from '../requests/request';
import type { Loaded } from '../requests/use-loaded';
import { capitalised } from '../text/words';
import { CopyButton, ShownText, StateMark, type Tone } from './values';

const WORDS: Record<Tone, string> = { good: 'Done', wait: 'Note', bad: 'Problem', plain: 'Note' };

interface NoticeProps {
  tone: Tone;
  /** Replaces the word of the tone. */
  word?: string;
  /** Announced instead of the whole text, which may have a secret in it. */
  spoken?: string;
  children: ComponentChildren;
}

/** A message. One of the tone `bad` interrupts those who hear the page; others wait for their turn. */
export function Notice({ tone, word = WORDS[tone], spoken, children }: NoticeProps) {
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

/** The title of a list, and what was created for it, whose secret no later answer shows. */
export function ListTitle({ noun, onCreate }: { noun: string; onCreate: () => void }) {
  const { created, setCreated } = useConsole();
  const mayChange = useMayChange();
  // The next secret would take its place.
  const isUnread = created?.secret !== undefined;
  return (
    <>
      <div class="title">
        <h1>{capitalised(noun)}s</h1>
        {mayChange && (
          <button type="button" class="main" aria-disabled={isUnread} onClick={() => isUnread || onCreate()}>
            Create a {noun}
          </button>
        )}
      </div>
      {!mayChange && <ReaderNote what={`changing ${noun}s`} />}
      {created && (
        <Notice tone="good" word="Created" spoken={`The ${created.noun} is created.`}>
          <p>
            {capitalised(created.noun)} <ShownText text={created.name} />
          </p>
          {created.secret && (
            <>
              <p>
                <b>The {created.secret.what} is shown once.</b> Copy it now, before you create another.
              </p>
              <p class="hex">
                <code class="wrap">{created.secret.value}</code>
                <CopyButton {...created.secret} />
              </p>
            </>
          )}
          <button type="button" onClick={() => setCreated(undefined)}>
            {created.secret ? 'I have copied it' : 'Close'}
          </button>
        </Notice>
      )}
    </>
  );
}

/** Why a page of a reader has no buttons that change something. */
export function ReaderNote({ what }: { what: string }) {
  const key = useConsole().session.holder ? 'a key that may subscribe' : 'ADMIN_API_KEY';
  return <p class="note">{`You are logged in to look only: ${what} needs ${key}.`}</p>;
}

interface LoadedProps<T> {
  loaded: Loaded<T>;
  children: (data: T) => ComponentChildren;
}

/** Shows data as soon as it is read, and goes on with it while it cannot be read again. */
export function WhenLoaded<T>({ loaded: { data, failure, reload }, children }: LoadedProps<T>) {
  return (
    <>
      {failure && failure.code !== 'CONSOLE_SESSION_ENDED' && (
        <FailureNotice failure={failure}>
          <button type="button" onClick={reload}>
            Try again
          </button>
        </FailureNotice>
      )}
      {data === undefined ? !failure && <p class="dim loading">Reading …</p> : children(data)}
    </>
  );
}

/** A request that a button starts. */
export interface Action {
  /** For `aria-disabled`: a button that is disabled would lose the focus. */
  isRunning: boolean;
  failure: RequestFailure | undefined;
  /** Does nothing while the last action runs. */
  run: (action: () => Promise<void>) => void;
}

export function useAction(): Action {
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState<RequestFailure>();
  const isBusy = useRef(false);
  const start = async (action: () => Promise<void>): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    setRunning(true);
    setFailure(undefined);
    try {
      await action();
    } catch (error) {
      setFailure(failureFrom(error));
    } finally {
      isBusy.current = false;
      setRunning(false);
    }
  };
  return { isRunning, failure, run: (action) => void start(action) };
}
