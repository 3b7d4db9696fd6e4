import { SUBSCRIBABLE_TYPES, RETRACTED_TYPE } from '../../service/subscriptions/event-types';
import { useConsole } from '../frame/console-context';
import { Field } from '../parts/field';
import type { DraftProblems, SubscriptionDraft } from './subscription-draft';

interface Props {
  draft: SubscriptionDraft;
  setDraft: (draft: SubscriptionDraft) => void;
  problems: DraftProblems;
}

/** Chooses the events that a new subscription gets. */
export function EventChoice({ draft, setDraft, problems }: Props) {
  const { overview } = useConsole();
  const toggle = (type: string): void => {
    const { types } = draft;
    const changed = types.includes(type) ? types.filter((other) => other !== type) : [...types, type];
    setDraft({ ...draft, types: changed });
  };
  return (
    <>
      <Field label="Registry" problems={problems.source}>
        {(control) => (
          <select
            {...control}
            value={draft.source}
            onChange={({ currentTarget }) => setDraft({ ...draft, source: currentTarget.value })}
          >
            <option value="">All registries</option>
            {overview?.registries.map(({ network, chainId, registry }) => (
              <option key={`${chainId}:${registry}`} value={`urn:service:${chainId}:${registry}`}>
                {network}, {registry}
              </option>
            ))}
          </select>
        )}
      </Field>
      <fieldset class="choices">
        <legend>Types of events (none chosen: all)</legend>
        {SUBSCRIBABLE_TYPES.filter((type) => type !== RETRACTED_TYPE).map((type) => (
          <label key={type}>
            <input type="checkbox" checked={draft.types.includes(type)} onChange={() => toggle(type)} />
            {type.replace('com.service.etr.', '')}
          </label>
        ))}
      </fieldset>
      <div class="fields">
        <Field
          label="Tokens"
          problems={problems.tokens}
          hint="Only events of these token ids, one in each line."
        >
          {(control) => (
            <textarea
              {...control}
              class="mono"
              rows={2}
              spellcheck={false}
              value={draft.tokens}
              onInput={({ currentTarget }) => setDraft({ ...draft, tokens: currentTarget.value })}
            />
          )}
        </Field>
        <Field
          label="Parties"
          problems={problems.parties}
          hint="Only events that name one of these addresses, one in each line."
        >
          {(control) => (
            <textarea
              {...control}
              class="mono"
              rows={2}
              spellcheck={false}
              value={draft.parties}
              onInput={({ currentTarget }) => setDraft({ ...draft, parties: currentTarget.value })}
            />
          )}
        </Field>
      </div>
    </>
  );
}
