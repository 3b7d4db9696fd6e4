import { useState } from 'preact/hooks';
import type { RequestProblem } from '../../service/validation/problems';
import { useConsole } from '../frame/console-context';
import { Field, FileDrop, Problems, TextField } from '../parts/fields';
import { ShownText } from '../parts/values';
import { RequestFailure } from '../requests/request';
import { escapedText } from '../text/visible-characters';
import { accountName, capitalised, shortened, sizeOf } from '../text/words';
import {
  EMPTY_PACKAGE,
  PACKAGE_TERMS,
  packagePointers,
  pointerOfTerm,
  type Attachment,
  type Draft,
} from './draft';
import { labelOf, REQUIRED_TERMS, type TermGroup } from './term-groups';

/** The properties of each part of the form. Fields are named by their pointers into the request. */
interface FormFields {
  draft: Draft;
  setDraft: (update: (now: Draft) => Draft) => void;
  problemsOf: (field: string) => readonly RequestProblem[];
  /** Somebody was in the field: from now on its problems are shown. */
  touch: (field: string) => void;
}

/** A group of terms with one text each. */
export function TermFields({ group, draft, setDraft, problemsOf, touch }: FormFields & { group: TermGroup }) {
  return (
    <fieldset class="card">
      <legend>
        <h2>{group.title}</h2>
      </legend>
      <div class="fields">
        {group.terms.map((term) => {
          const pointer = pointerOfTerm(term);
          return (
            <TextField
              key={term}
              label={labelOf(term)}
              isRequired={REQUIRED_TERMS.includes(term)}
              problems={problemsOf(pointer)}
              value={draft.terms[term] ?? ''}
              onChange={(value) => {
                touch(pointer);
                setDraft((now) => ({ ...now, terms: { ...now.terms, [term]: value } }));
              }}
              input={{ name: term, dir: 'auto', onBlur: () => touch(pointer) }}
            />
          );
        })}
      </div>
    </fieldset>
  );
}

export function PackageFields({ draft, setDraft, problemsOf, touch }: FormFields) {
  const { packages } = draft;
  const pointers = packagePointers(packages);
  const setPackages = (update: (rows: Draft['packages']) => Draft['packages']): void =>
    setDraft((now) => ({ ...now, packages: update(now.packages) }));
  return (
    <fieldset class="card" tabIndex={-1}>
      <legend>
        <h2>Packages</h2>
      </legend>
      {packages.map((row, index) => (
        <fieldset key={index} class="row">
          <legend class="unseen">Package {index + 1}</legend>
          {PACKAGE_TERMS.map((term) => {
            const pointer = pointers[index];
            const field = pointer === undefined ? undefined : `${pointer}/${term}`;
            const touchField = (): void => {
              if (field !== undefined) touch(field);
            };
            return (
              <TextField
                key={term}
                label={labelOf(term)}
                problems={field === undefined ? [] : problemsOf(field)}
                isWide={term === 'packagesDescription'}
                value={row[term]}
                onChange={(value) => {
                  touchField();
                  setPackages((rows) => rows.with(index, { ...(rows[index] ?? row), [term]: value }));
                }}
                input={{ dir: 'auto', onBlur: touchField }}
              />
            );
          })}
          <button
            type="button"
            aria-label={`Remove package ${index + 1}`}
            onClick={() => setPackages((rows) => rows.toSpliced(index, 1))}
          >
            Remove
          </button>
        </fieldset>
      ))}
      <Problems problems={problemsOf(pointerOfTerm('packages'))} />
      <button type="button" onClick={() => setPackages((rows) => [...rows, EMPTY_PACKAGE])}>
        Add a package
      </button>
    </fieldset>
  );
}

/** Files that become part of the document. */
export function AttachmentFields({ draft, setDraft, problemsOf, touch }: FormFields) {
  const { attachments } = draft;
  const pointer = pointerOfTerm('attachments');
  const { isReadingFiles, isChecking, attach } = useConsole().issuing;
  return (
    <fieldset class="card" tabIndex={-1}>
      <legend>
        <h2>Attachments</h2>
      </legend>
      {attachments.length > 0 && (
        <ul class="plain files">
          {attachments.map(({ filename, mimeType, data }, index) => (
            <li key={index}>
              <span class="grow">
                <ShownText text={filename} longest={80} />{' '}
                <span class="dim">
                  {mimeType}, {sizeOf(bytesOfBase64(data))}
                </span>
              </span>
              <button
                type="button"
                aria-label={`Remove ${escapedText(filename)}`}
                onClick={() =>
                  setDraft((now) => ({ ...now, attachments: now.attachments.toSpliced(index, 1) }))
                }
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <Problems problems={problemsOf(pointer)} />
      <FileDrop
        label="Add files"
        hint={
          isReadingFiles ? 'Reading …' : 'Any files, for example the PDF. The document may have 50 MB in all.'
        }
        isMultiple
        isDisabled={isReadingFiles || isChecking}
        onFiles={(files) => {
          touch(pointer);
          void attach(files, readAttachment, draft);
        }}
      />
    </fieldset>
  );
}

function bytesOfBase64(data: string): number {
  return (data.replace(/=+$/, '').length * 3) >> 2;
}

function readAttachment(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    const refuse = (): void => {
      const message = `${escapedText(file.name)} could not be read. Check that it exists and add it again.`;
      reject(new RequestFailure(0, 'FILE_UNREADABLE', message));
    };
    reader.onload = () => {
      // A data URL: `data:application/pdf;base64,JVBERi…`. That of an empty file may be `data:` alone.
      const [, data = ''] = (typeof reader.result === 'string' ? reader.result : '').split(',');
      if (data === '' && file.size > 0) return refuse();
      resolve({ filename: file.name, mimeType: file.type || 'application/octet-stream', data });
    };
    reader.onerror = refuse;
    reader.readAsDataURL(file);
  });
}

/** The most bytes of a remark, until the service tells its limit. */
const MOST_REMARK_BYTES = 120;

/** The owner, the holder and the remark of the mint. */
export function PartyFields(fields: FormFields) {
  const { draft, setDraft, problemsOf, touch } = fields;
  const bytes = new TextEncoder().encode(draft.remarks).length;
  const most = useConsole().issuing.validation?.mostRemarkBytes ?? MOST_REMARK_BYTES;
  return (
    <fieldset class="card">
      <legend>
        <h2>Token</h2>
      </legend>
      <div class="fields">
        <AccountField role="owner" hint="The first beneficiary." {...fields} />
        <AccountField role="holder" hint="The first holder. It may be the owner." {...fields} />
        <TextField
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
          value={draft.remarks}
          onChange={(remarks) => {
            touch('/remarks');
            setDraft((now) => ({ ...now, remarks }));
          }}
          input={{ name: 'remarks', dir: 'auto', onBlur: () => touch('/remarks') }}
        />
      </div>
    </fieldset>
  );
}

interface AccountProps extends FormFields {
  role: 'owner' | 'holder';
  hint: string;
}

/** The option of an address that is no account. */
const OTHER = 'other';

/** An address. On a local network it can be chosen among the accounts of the node. */
function AccountField({ role, hint, draft, setDraft, problemsOf, touch }: AccountProps) {
  const { accounts } = useConsole().facts;
  const value = draft[role];
  const [isOther, setOther] = useState(accounts.length === 0 || (value !== '' && !accounts.includes(value)));
  const pointer = `/${role}`;
  const change = (address: string): void => setDraft((now) => ({ ...now, [role]: address }));
  return (
    <Field label={capitalised(role)} isRequired hint={hint} problems={problemsOf(pointer)}>
      {(control) => (
        <>
          {accounts.length > 0 && (
            <select
              {...control}
              aria-invalid={control['aria-invalid'] && !isOther}
              name={role}
              value={isOther ? OTHER : value}
              onBlur={() => touch(pointer)}
              onChange={({ currentTarget }) => {
                setOther(currentTarget.value === OTHER);
                change(currentTarget.value === OTHER ? '' : currentTarget.value);
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
                'aria-label': `Address of the ${role}`,
              })}
              type="text"
              class="mono"
              name={`${role}-address`}
              autocomplete="off"
              spellcheck={false}
              placeholder="0x…"
              value={value}
              onBlur={() => touch(pointer)}
              onInput={({ currentTarget }) => change(currentTarget.value)}
            />
          )}
        </>
      )}
    </Field>
  );
}
