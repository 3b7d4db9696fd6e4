import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useId, useState } from 'preact/hooks';
import { RequestFailure } from '../requests/request';
import type { FieldProblem } from './field-problem';
import { ShownText } from './values';

interface FieldProps {
  label: string;
  isRequired?: boolean;
  hint?: ComponentChildren;
  problems?: readonly FieldProblem[] | undefined;
  isWide?: boolean;
  /** Renders the control with these attributes. */
  children: (control: {
    id: string;
    'aria-describedby': string;
    'aria-invalid': boolean;
    'aria-required': boolean;
  }) => ComponentChildren;
}

/** A control with its label, its hint and its problems. */
export function Field({
  label,
  isRequired = false,
  hint,
  problems = [],
  isWide = false,
  children,
}: FieldProps) {
  const id = useId();
  const notes = `${id}-notes`;
  return (
    <div class={`field${isWide ? ' wide' : ''}`}>
      <label for={id}>
        {label}
        {isRequired && <span class="required"> required</span>}
      </label>
      {children({
        id,
        'aria-describedby': notes,
        'aria-invalid': problems.some(({ isRefused }) => isRefused),
        'aria-required': isRequired,
      })}
      <div id={notes} class="notes">
        {hint !== undefined && <div class="hint">{hint}</div>}
        <Problems problems={problems} />
      </div>
    </div>
  );
}

interface ValueProps extends Omit<FieldProps, 'children'> {
  value: string;
  onChange: (value: string) => void;
}

interface TextProps extends ValueProps {
  /** Further attributes of the input. */
  input?: InputHTMLAttributes<HTMLInputElement>;
}

/** A field of one line. */
export function TextField({ value, onChange, input, ...field }: TextProps) {
  return (
    <Field {...field}>
      {(control) => (
        <input
          {...control}
          type="text"
          autocomplete="off"
          {...input}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A field of several lines in a fixed-width font. */
export function LinesField({ rows, value, onChange, ...field }: ValueProps & { rows: number }) {
  return (
    <Field {...field}>
      {(control) => (
        <textarea
          {...control}
          class="mono"
          rows={rows}
          spellcheck={false}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectProps extends ValueProps {
  options: readonly (readonly [value: string, words: string])[];
}

export function SelectField({ options, value, onChange, ...field }: SelectProps) {
  return (
    <Field {...field}>
      {(control) => (
        <select {...control} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          {options.map(([option, words]) => (
            <option key={option} value={option}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The props of the field that changes a member of a draft. */
export type FieldsOf<Draft> = (member: keyof Draft) => Pick<ValueProps, 'problems' | 'value' | 'onChange'>;

export function fieldsOf<Draft extends object>(
  draft: Draft,
  setDraft: (draft: Draft) => void,
  problems: Partial<Record<keyof Draft, FieldProblem[]>>,
): FieldsOf<Draft> {
  return (member) => ({
    problems: problems[member],
    value: String(draft[member]),
    onChange: (value) => setDraft({ ...draft, [member]: value }),
  });
}

/** The problems of a field, which are announced. */
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

interface DropProps {
  label: string;
  hint: string;
  accept?: string;
  isMultiple?: boolean;
  isDisabled?: boolean;
  onFiles: (files: File[]) => void;
}

/** A file picker that files can be dropped on. */
export function FileDrop({
  label,
  hint,
  accept,
  isMultiple = false,
  isDisabled = false,
  onFiles,
}: DropProps) {
  const id = useId();
  const [isOver, setOver] = useState(false);
  const take = (files: FileList | null | undefined): void => {
    setOver(false);
    if (files && files.length > 0 && !isDisabled) onFiles([...files].slice(0, isMultiple ? undefined : 1));
  };
  return (
    <div
      class={`drop${isOver ? ' over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files);
      }}
    >
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        accept={accept}
        multiple={isMultiple}
        aria-disabled={isDisabled}
        aria-describedby={`${id}-hint`}
        onClick={(event) => {
          if (isDisabled) return event.preventDefault();
          // So that the same file can be chosen again.
          event.currentTarget.value = '';
        }}
        onChange={({ currentTarget }) => take(currentTarget.files)}
      />
      <p id={`${id}-hint`} class="hint">
        {hint}
      </p>
    </div>
  );
}

/** A credential is a little longer than the body of at most 50 MB that it was issued from. */
const MOST_BYTES = 53 * 1024 * 1024;

/** Reads a file that has to be a JSON object, and returns its text. */
export async function readJsonFile(file: File): Promise<string> {
  if (file.size > MOST_BYTES)
    throw refused(
      'FILE_TOO_LARGE',
      `${file.name} has more than 53 MB. Verify it with: npx tdoc verify-credential`,
    );
  return jsonObjectText(await file.text(), file.name);
}

/** Checks that a text is a JSON object. Its bytes stay as they are: they may have been signed. */
export function jsonObjectText(text: string, name: string): string {
  const remedy = 'Choose the JSON file of a credential.';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refused('NOT_JSON', `${name} is not JSON. ${remedy}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused('NOT_A_CREDENTIAL', `${name} is not a JSON object. ${remedy}`);
  return text;
}

function refused(code: string, message: string): RequestFailure {
  return new RequestFailure(0, code, message);
}
