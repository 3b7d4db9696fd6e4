import { RETRACTED_TYPE, SUBSCRIBABLE_TYPES, shortType } from '../../service/events/event-types';
import { useConsole } from '../frame/console-context';
import { Field } from '../parts/fields';
import type { FieldProblem } from '../parts/field-problem';
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
            {shortType(type)}
          </label>
        ))}
      </fieldset>
      <div class="fields">
        <LinesField
          label="Tokens"
          hint="Only events of these token ids, one in each line."
          problems={problems.tokens}
          value={draft.tokens}
          onChange={(tokens) => setDraft({ ...draft, tokens })}
        />
        <LinesField
          label="Parties"
          hint="Only events that name one of these addresses, one in each line."
          problems={problems.parties}
          value={draft.parties}
          onChange={(parties) => setDraft({ ...draft, parties })}
        />
      </div>
    </>
  );
}

interface LinesProps {
  label: string;
  hint: string;
  problems: readonly FieldProblem[] | undefined;
  value: string;
  onChange: (value: string) => void;
}

/** Several values, one in each line. */
function LinesField({ label, hint, problems, value, onChange }: LinesProps) {
  return (
    <Field label={label} hint={hint} problems={problems}>
      {(control) => (
        <textarea
          {...control}
          class="mono"
          rows={2}
          spellcheck={false}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Field>
  );
}
