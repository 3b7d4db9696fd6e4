import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { Dialog } from '../parts/dialog';
import { Field } from '../parts/fields';
import { FailureNotice, useAction } from '../parts/feedback';
import type { Subscription } from '../requests/api';
import { DeliveryOptions } from './delivery-options';
import { EventChoice } from './event-choice';
import { EMPTY_SUBSCRIPTION, problemsOf, subscriptionRequestOf } from './subscription-draft';

interface Props {
  onClose: () => void;
  onCreated: (subscription: Subscription) => void;
}

/** The form of a new subscription. */
export function CreateDialog({ onClose, onCreated }: Props) {
  const { api, facts } = useConsole();
  const { isLocal } = facts.network;
  const [draft, setDraft] = useState(EMPTY_SUBSCRIPTION);
  const { isRunning, failure, run } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const problems = problemsOf(failure, draft);
  useEffect(() => {
    if (failure) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [failure]);
  // A secret that the answer brings must not be missed.
  const close = (): void => {
    if (!isRunning) onClose();
  };
  return (
    <Dialog title="Create a subscription" onClose={close}>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          run(async () => onCreated(await api.createSubscription(subscriptionRequestOf(draft))));
        }}
      >
        <Field
          label="Sink"
          isRequired
          problems={problems.sink}
          hint={`The https URL that events are sent to.${isLocal ? ' Here also http to this machine.' : ''}`}
        >
          {(control) => (
            <input
              {...control}
              type="url"
              name="sink"
              required
              autocomplete="off"
              placeholder="https://"
              value={draft.sink}
              onInput={({ currentTarget }) => setDraft({ ...draft, sink: currentTarget.value })}
            />
          )}
        </Field>
        <EventChoice draft={draft} setDraft={setDraft} problems={problems} />
        <DeliveryOptions draft={draft} setDraft={setDraft} problems={problems} />
        {failure && Object.keys(problems).length === 0 && <FailureNotice failure={failure} />}
        <p class="buttons">
          <button type="submit" class="main" aria-disabled={isRunning}>
            {isRunning ? 'Creating …' : 'Create'}
          </button>
          <button type="button" aria-disabled={isRunning} onClick={close}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}
