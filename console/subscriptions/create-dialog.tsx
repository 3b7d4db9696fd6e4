import { RETRACTED_TYPE, SUBSCRIBABLE_TYPES, shortType } from '../../service/events/cloud-event';
import { useConsole } from '../frame/console-context';
import { Dialog } from '../parts/dialog';
import { useAction } from '../parts/feedback';
import { fieldsOf, type FieldsOf, LinesField, SelectField, TextField } from '../parts/fields';
import { problemsOf, subscriptionRequestOf, type SubscriptionDraft } from './subscription-draft';

interface Props {
  draft: SubscriptionDraft;
  onClose: () => void;
}

export function CreateDialog({ draft, onClose }: Props) {
  const { api, facts, setCreated, setSubscriptionDraft: setDraft } = useConsole();
  const { isLocal } = facts.network;
  const action = useAction();
  const problems = problemsOf(action.failure, draft);
  const create = async (): Promise<void> => {
    const { id: name, config } = await api.createSubscription(subscriptionRequestOf(draft));
    const { secret: value } = config;
    const secret = value === undefined ? value : { what: 'secret of Standard Webhooks', value };
    setCreated({ noun: 'subscription', name, secret });
    onClose();
  };
  const set = (part: Partial<SubscriptionDraft>): void => setDraft({ ...draft, ...part });
  const field = fieldsOf(draft, setDraft, problems);
  const parts = { draft, set, field };
  return (
    <Dialog title="Create a subscription" verb="Create" {...{ action, problems, onClose }} onSubmit={create}>
      <TextField
        label="Sink"
        isRequired
        hint={`The https URL that events are sent to.${isLocal ? ' Here also http to this machine.' : ''}`}
        {...field('sink')}
        input={{ type: 'url', name: 'sink', required: true, placeholder: 'https://' }}
      />
      <EventChoice {...parts} />
      <DeliveryOptions {...parts} />
      <HeaderFields {...parts} />
    </Dialog>
  );
}

interface PartProps {
  draft: SubscriptionDraft;
  set: (part: Partial<SubscriptionDraft>) => void;
  field: FieldsOf<SubscriptionDraft>;
}

/** The events that a new subscription gets. */
function EventChoice({ draft, set, field }: PartProps) {
  const registries = useConsole().overview?.registries ?? [];
  const { types } = draft;
  return (
    <>
      <SelectField
        label="Registry"
        options={[
          ['', 'All registries'],
          ...registries.map(
            ({ network, chainId, registry }) =>
              [`urn:service:${chainId}:${registry}`, `${network}, ${registry}`] as const,
          ),
        ]}
        {...field('source')}
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
          rows={2}
          {...field('tokens')}
        />
        <LinesField
          label="Parties"
          hint="Only events that name one of these addresses, one in each line."
          rows={2}
          {...field('parties')}
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
function DeliveryOptions({ draft, set, field }: PartProps) {
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
          {...field('startFrom')}
        />
        {draft.startFrom === 'block' && (
          <TextField
            label="Block"
            isRequired
            {...field('block')}
            input={{ type: 'number', min: 0, step: 1, required: true }}
          />
        )}
        <SelectField
          label="Content type"
          options={[
            ['application/json', 'application/json'],
            ['application/cloudevents+json', 'application/cloudevents+json'],
          ]}
          {...field('contentType')}
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
