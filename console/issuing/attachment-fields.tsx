import { useRef } from 'preact/hooks';
import { Problems } from '../parts/field';
import { FileDrop } from '../parts/file-drop';
import { Notice } from '../parts/notice';
import { ShownText } from '../parts/shown-text';
import { useAction } from '../parts/use-action';
import { sizeOf } from '../text/bytes';
import { escapedText } from '../text/visible-characters';
import { pointerOfTerm } from './draft';
import type { FormFields } from './form-fields';
import { readAttachment } from './read-attachment';

/** Files that become part of the document. */
export function AttachmentFields({ draft, setDraft, problemsOf, touch }: FormFields) {
  const { attachments } = draft;
  const pointer = pointerOfTerm('attachments');
  const { isRunning, failure, run } = useAction();
  // The form may change while files are read.
  const latest = useRef(draft);
  latest.current = draft;
  const add = async (files: File[]): Promise<void> => {
    const read = await Promise.all(files.map(readAttachment));
    touch(pointer);
    setDraft({ ...latest.current, attachments: [...latest.current.attachments, ...read] });
  };
  return (
    <fieldset class="card">
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
                  {mimeType}, {sizeOf(Math.floor((data.length * 3) / 4))}
                </span>
              </span>
              <button
                type="button"
                aria-label={`Remove ${escapedText(filename)}`}
                onClick={() => setDraft({ ...draft, attachments: attachments.toSpliced(index, 1) })}
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
        hint={isRunning ? 'Reading …' : 'Any files, for example the PDF. The document may have 50 MB in all.'}
        isMultiple
        onFiles={(files) => run(() => add(files))}
      />
      {failure && <Notice tone="bad">{failure.message}</Notice>}
    </fieldset>
  );
}
