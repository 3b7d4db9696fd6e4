import { useConsole } from '../frame/console-context';
import { FileDrop, Problems } from '../parts/fields';
import { ShownText } from '../parts/values';
import { sizeOf } from '../text/words';
import { escapedText } from '../text/visible-characters';
import { pointerOfTerm } from './draft';
import type { FormFields } from './form-fields';
import { readAttachment } from './read-attachment';

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
