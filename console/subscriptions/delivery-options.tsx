import { Field } from '../parts/fields';
import { HeaderFields } from './header-fields';
import type { DraftProblems, SubscriptionDraft } from './subscription-draft';

interface Props {
  draft: SubscriptionDraft;
  setDraft: (draft: SubscriptionDraft) => void;
  problems: DraftProblems;
}

/** Where a new subscription begins, and how its events are sent. */
export function DeliveryOptions({ draft, setDraft, problems }: Props) {
  return (
    <>
      <div class="fields">
        <Field label="First events">
          {(control) => (
            <select
              {...control}
              value={draft.startFrom}
              onChange={({ currentTarget }) =>
                setDraft({ ...draft, startFrom: currentTarget.value as SubscriptionDraft['startFrom'] })
              }
            >
              <option value="now">From now on</option>
              <option value="beginning">From the beginning</option>
              <option value="block">From a block on</option>
            </select>
          )}
        </Field>
        {draft.startFrom === 'block' && (
          <Field label="Block" isRequired problems={problems.block}>
            {(control) => (
              <input
                {...control}
                type="number"
                min={0}
                step={1}
                required
                value={draft.block}
                onInput={({ currentTarget }) => setDraft({ ...draft, block: currentTarget.value })}
              />
            )}
          </Field>
        )}
        <Field label="Content type">
          {(control) => (
            <select
              {...control}
              value={draft.contentType}
              onChange={({ currentTarget }) =>
                setDraft({ ...draft, contentType: currentTarget.value as SubscriptionDraft['contentType'] })
              }
            >
              <option>application/json</option>
              <option>application/cloudevents+json</option>
            </select>
          )}
        </Field>
      </div>
      <fieldset class="choices">
        <legend>Options</legend>
        <label>
          <input
            type="checkbox"
            checked={draft.retractions}
            onChange={() => setDraft({ ...draft, retractions: !draft.retractions })}
          />
          Retractions of reorganised events
        </label>
        <label>
          <input
            type="checkbox"
            checked={draft.standardWebhooks}
            onChange={() => setDraft({ ...draft, standardWebhooks: !draft.standardWebhooks })}
          />
          Headers of Standard Webhooks, with a secret
        </label>
      </fieldset>
      <HeaderFields draft={draft} setDraft={setDraft} />
    </>
  );
}
