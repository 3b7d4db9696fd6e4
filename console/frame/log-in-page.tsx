import { useEffect, useRef, useState } from 'preact/hooks';
import { Field } from '../parts/fields';
import { FailureNotice, Notice, useAction } from '../parts/feedback';

interface Props {
  /** Why somebody who was here has to log in. */
  reason: string | undefined;
  onLogIn: (key: string) => Promise<void>;
}

const HINT =
  'ADMIN_API_KEY of the service, or CONSOLE_READ_KEY to look only. A devnet prints a link that logs in.';

/** Asks for a key. It is sent to the service once and kept nowhere. */
export function LogInPage({ reason, onLogIn }: Props) {
  const [key, setKey] = useState('');
  const { isRunning, failure, run } = useAction();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Console';
    field.current?.focus();
  }, []);
  return (
    <main class="log-in">
      <h1>Console</h1>
      <p class="dim">Transferable document service</p>
      {reason !== undefined && (
        <div id="reason">
          <Notice tone="wait">{reason}</Notice>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(() => onLogIn(key));
        }}
      >
        <Field label="Key" hint={HINT}>
          {(control) => (
            <input
              {...control}
              aria-describedby={`reason ${control['aria-describedby']}`}
              ref={field}
              type="password"
              name="key"
              autocomplete="current-password"
              spellcheck={false}
              required
              value={key}
              onInput={({ currentTarget }) => setKey(currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit" class="main" aria-disabled={isRunning}>
          {isRunning ? 'Logging in …' : 'Log in'}
        </button>
      </form>
      <FailureNotice failure={failure} />
    </main>
  );
}
