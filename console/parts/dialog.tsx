import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { FailureNotice, type Action } from './feedback';

interface Props {
  title: string;
  action: Action;
  onSubmit: () => Promise<void>;
  /** The words of its button. */
  verb: string;
  /** Whether it takes something away: the other button has the focus at first. */
  isDanger?: boolean;
  /** Of the fields. A failure that is none of them is shown below. */
  problems?: object;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * A modal dialog that does something, while it is rendered. Escape asks `onClose` to close it, but not while
 * it is done: a secret in the answer must not be missed. The focus returns.
 */
export function Dialog({ title, action, onSubmit, onClose, children, ...options }: Props) {
  const { isRunning, failure, run } = action;
  const { verb, isDanger = false, problems = {} } = options;
  const dialog = useRef<HTMLDialogElement>(null);
  const last = useRef<Element>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    if (failure) dialog.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [failure]);
  const close = (): void => {
    if (!isRunning) onClose();
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        last.current = document.activeElement;
        close();
      }}
      onClose={() => {
        // Chromium closes a dialog at the second Escape, whatever the page wants.
        close();
        dialog.current?.showModal();
        if (last.current instanceof HTMLElement) last.current.focus();
      }}
    >
      <h2 id={heading}>{title}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(onSubmit);
        }}
      >
        {children}
        {Object.keys(problems).length === 0 && <FailureNotice failure={failure} />}
        <p class="buttons">
          <button type="submit" class={isDanger ? 'danger' : 'main'} aria-disabled={isRunning}>
            {verb}
            {isRunning && ' …'}
          </button>
          <button type="button" autofocus={isDanger} aria-disabled={isRunning} onClick={close}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  );
}
