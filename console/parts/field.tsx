import { useId } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { FieldProblem } from './field-problem';
import { ShownText } from './shown-text';

/** The properties of a field's control. */
export interface ControlProps {
  id: string;
  'aria-describedby': string;
  'aria-invalid': boolean;
}

interface Props {
  label: string;
  isRequired?: boolean;
  hint?: ComponentChildren;
  problems?: readonly FieldProblem[] | undefined;
  isWide?: boolean;
  children: (control: ControlProps) => ComponentChildren;
}

/** A control with its label, its hint and its problems. */
export function Field({ label, isRequired = false, hint, problems = [], isWide = false, children }: Props) {
  const id = useId();
  const notes = `${id}-notes`;
  const isInvalid = problems.some(({ isRefused }) => isRefused);
  return (
    <div class={`field${isWide ? ' wide' : ''}`}>
      <label for={id}>
        {label}
        {isRequired && <span class="required"> required</span>}
      </label>
      {children({ id, 'aria-describedby': notes, 'aria-invalid': isInvalid })}
      <div id={notes} class="notes">
        {hint !== undefined && <div class="hint">{hint}</div>}
        <Problems problems={problems} />
      </div>
    </div>
  );
}

/** Problems under their field. */
export function Problems({ problems }: { problems: readonly FieldProblem[] }) {
  return (
    <div aria-live="polite">
      {problems.map(({ message, isRefused }) => (
        <p key={message} class={isRefused ? 'problem' : 'recommendation'}>
          {isRefused ? '' : 'Recommended: '}
          <ShownText text={message} />
        </p>
      ))}
    </div>
  );
}
