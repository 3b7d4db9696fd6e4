import { useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { Field } from '../parts/fields';
import type { FieldProblem } from '../parts/field-problem';
import { accountName, shortened } from '../text/words';

interface Props {
  label: string;
  hint: string;
  value: string;
  problems: readonly FieldProblem[];
  onTouch: () => void;
  onChange: (address: string) => void;
}

const OTHER = 'other';

/** An address. On a local network it can be chosen among the accounts of the node. */
export function AccountField({ label, hint, value, problems, onTouch, onChange }: Props) {
  const { accounts } = useConsole().facts;
  const [isOther, setOther] = useState(accounts.length === 0 || (value !== '' && !accounts.includes(value)));
  const name = label.toLowerCase();
  return (
    <Field label={label} isRequired hint={hint} problems={problems}>
      {(control) => (
        <>
          {accounts.length > 0 && (
            <select
              {...control}
              aria-invalid={control['aria-invalid'] && !isOther}
              name={name}
              value={isOther ? OTHER : value}
              onBlur={onTouch}
              onChange={({ currentTarget }) => {
                setOther(currentTarget.value === OTHER);
                onChange(currentTarget.value === OTHER ? '' : currentTarget.value);
              }}
            >
              {value === '' && !isOther && <option value="">Choose an account</option>}
              {accounts.map((address) => (
                <option key={address} value={address}>
                  {accountName(address, accounts)} ({shortened(address)})
                </option>
              ))}
              <option value={OTHER}>Another address</option>
            </select>
          )}
          {isOther && (
            <input
              {...control}
              {...(accounts.length > 0 && {
                id: `${control.id}-address`,
                'aria-label': `Address of the ${name}`,
              })}
              type="text"
              class="mono"
              name={`${name}-address`}
              autocomplete="off"
              spellcheck={false}
              placeholder="0x…"
              value={value}
              onBlur={onTouch}
              onInput={({ currentTarget }) => onChange(currentTarget.value)}
            />
          )}
        </>
      )}
    </Field>
  );
}
