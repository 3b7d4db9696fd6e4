import { useEffect, useRef, useState } from 'preact/hooks';
import { RETRACTED_TYPE, SUBSCRIBABLE_TYPES, shortType } from '../../service/events/cloud-event';
import { useConsole } from '../frame/console-context';
import { Dialog } from '../parts/dialog';
import { FailureNotice, useAction } from '../parts/feedback';
import { LinesField, SelectField, TextField } from '../parts/fields';
import type { Subscription } from '../requests/api';
import {
  EMPTY_SUBSCRIPTION,
  problemsOf,
  subscriptionRequestOf,
  type DraftProblems,
  type SubscriptionDraft,
} from './subscription-draft';

interface Props {
  onClose: () => void;
  onCreated: (subscription: Subscription) => void;
}

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
  const set = (part: Partial<SubscriptionDraft>): void => setDraft({ ...draft, ...part });
  const parts = { draft, set, problems };
  return (
    <Dialog title="Create a subscription" onClose={close}>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          run(async () => onCreated(await api.createSubscription(subscriptionRequestOf(draft))));
        }}
      >
        <TextField
          label="Sink"
          isRequired
          problems={problems.sink}
          hint={`The https URL that events are sent to.${isLocal ? ' Here also http to this machine.' : ''}`}
          value={draft.sink}
          onChange={(sink) => set({ sink })}
          input={{ type: 'url', name: 'sink', required: true, placeholder: 'https://' }}
        />
        <EventChoice {...parts} />
        <DeliveryOptions {...parts} />
        <HeaderFields {...parts} />
        {Object.keys(problems).length === 0 && <FailureNotice failure={failure} />}
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

interface PartProps {
  draft: SubscriptionDraft;
  set: (part: Partial<SubscriptionDraft>) => void;
  problems: DraftProblems;
}

/** The events that a new subscription gets. */
function EventChoice({ draft, set, problems }: PartProps) {
  const registries = useConsole().overview?.registries ?? [];
  const { types } = draft;
  return (
    <>
      <SelectField
        label="Registry"
        problems={problems.source}
        options={[
          ['', 'All registries'],
          ...registries.map(
            ({ network, chainId, registry }) =>
              [`urn:service:${chainId}:${registry}`, `${network}, ${registry}`] as const,
          ),
        ]}
        value={draft.source}
        onChange={(source) => set({ source })}
      />
      <fieldset class="choices">
        <legend>Types of events (none chosen: all of the chain)</legend>
        {SUBSCRIBABLE_TYPES.filter((type) => type !== RETRACTED_TYPE).map((type) => (
          <Choice
            key={type}
            isChosen={types.includes(type)}
            onChange={(isChosen) =>
              set({ types: isChosen ? [...types, type] : types.filter((other) => other !== type) })
            }
          >
            {shortType(type)}
          </Choice>
        ))}
      </fieldset>
      <div class="fields">
        <LinesField
          label="Tokens"
          hint="Only events of these token ids, one in each line."
          problems={problems.tokens}
          rows={2}
          value={draft.tokens}
          onChange={(tokens) => set({ tokens })}
        />
        <LinesField
          label="Parties"
          hint="Only events that name one of these addresses, one in each line."
          problems={problems.parties}
          rows={2}
          value={draft.parties}
          onChange={(parties) => set({ parties })}
        />
      </div>
    </>
  );
}

interface ChoiceProps {
  isChosen: boolean;
  onChange: (isChosen: boolean) => void;
  children: string;
}

function Choice({ isChosen, onChange, children }: ChoiceProps) {
  return (
    <label>
      <input
        type="checkbox"
        checked={isChosen}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      {children}
    </label>
  );
}

/** Where a new subscription begins, and how its events are sent. */
function DeliveryOptions({ draft, set, problems }: PartProps) {
  return (
    <>
      <div class="fields">
        <SelectField
          label="First events"
          options={[
            ['now', 'From now on'],
            ['beginning', 'From the beginning'],
            ['block', 'From a block on'],
          ]}
          value={draft.startFrom}
          onChange={(startFrom) => set({ startFrom: startFrom as SubscriptionDraft['startFrom'] })}
        />
        {draft.startFrom === 'block' && (
          <TextField
            label="Block"
            isRequired
            problems={problems.block}
            value={draft.block}
            onChange={(block) => set({ block })}
            input={{ type: 'number', min: 0, step: 1, required: true }}
          />
        )}
        <SelectField
          label="Content type"
          options={[
            ['application/json', 'application/json'],
            ['application/cloudevents+json', 'application/cloudevents+json'],
          ]}
          value={draft.contentType}
          onChange={(contentType) => set({ contentType: contentType as SubscriptionDraft['contentType'] })}
        />
      </div>
      <fieldset class="choices">
        <legend>Options</legend>
        <Choice isChosen={draft.retractions} onChange={(retractions) => set({ retractions })}>
          Retractions of reorganised events
        </Choice>
        <Choice isChosen={draft.standardWebhooks} onChange={(standardWebhooks) => set({ standardWebhooks })}>
          Headers of Standard Webhooks, with a secret
        </Choice>
      </fieldset>
    </>
  );
}

/** Headers that each delivery gets. Their values are secrets. */
function HeaderFields({ draft: { headers }, set }: PartProps) {
  const change = (index: number, changed: Partial<(typeof headers)[number]>): void =>
    set({ headers: headers.map((header, at) => (at === index ? { ...header, ...changed } : header)) });
  return (
    <fieldset class="choices" tabIndex={-1}>
      <legend>Headers of each delivery</legend>
      {headers.map((header, index) => (
        <div key={index} class="row header-row">
          <TextField
            label={`Name of header ${index + 1}`}
            value={header.name}
            onChange={(name) => change(index, { name })}
            input={{ spellcheck: false }}
          />
          <TextField
            label={`Value of header ${index + 1}`}
            value={header.value}
            onChange={(value) => change(index, { value })}
            input={{ type: 'password' }}
          />
          <button
            type="button"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => set({ headers: headers.toSpliced(index, 1) })}
          >
            Remove
          </button>
        </div>
      ))}
      <p class="hint">Values are secrets: no later answer shows them. They need SECRETS_KEY.</p>
      <button type="button" onClick={() => set({ headers: [...headers, { name: '', value: '' }] })}>
        Add a header
      </button>
    </fieldset>
  );
}
