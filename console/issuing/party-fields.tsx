import type { Validation } from '../../service/console/views';
import { Field } from '../parts/fields';
import { AccountField } from './account-field';
import type { FormFields } from './form-fields';

/** Bytes of a remark that the contracts take, until the service says so. */
const MOST_REMARK_BYTES = 120;

/** The owner, the holder and the remark of the mint. */
export function PartyFields({
  draft,
  setDraft,
  problemsOf,
  touch,
  remarks,
}: FormFields & { remarks: Validation | undefined }) {
  const bytes = new TextEncoder().encode(draft.remarks).length;
  const most = remarks?.mostRemarkBytes ?? MOST_REMARK_BYTES;
  return (
    <fieldset class="card">
      <legend>
        <h2>Token</h2>
      </legend>
      <div class="fields">
        <AccountField
          label="Owner"
          hint="The first beneficiary."
          value={draft.owner}
          problems={problemsOf('/owner')}
          onTouch={() => touch('/owner')}
          onChange={(owner) => setDraft((now) => ({ ...now, owner }))}
        />
        <AccountField
          label="Holder"
          hint="The first holder. It may be the owner."
          value={draft.holder}
          problems={problemsOf('/holder')}
          onTouch={() => touch('/holder')}
          onChange={(holder) => setDraft((now) => ({ ...now, holder }))}
        />
        <Field
          label="Remarks"
          isWide
          problems={problemsOf('/remarks')}
          hint={
            <>
              <span class={bytes > most ? 'problem' : undefined}>
                {bytes} of {most} bytes.
              </span>{' '}
              Recorded with the mint, readable with the credential only.
            </>
          }
        >
          {(control) => (
            <input
              {...control}
              type="text"
              dir="auto"
              name="remarks"
              autocomplete="off"
              value={draft.remarks}
              onBlur={() => touch('/remarks')}
              onInput={({ currentTarget }) => {
                touch('/remarks');
                const { value } = currentTarget;
                setDraft((now) => ({ ...now, remarks: value }));
              }}
            />
          )}
        </Field>
      </div>
    </fieldset>
  );
}
