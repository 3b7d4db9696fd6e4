import { useState } from 'preact/hooks';
import type { VerifyView } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { Field } from '../parts/field';
import { FileDrop } from '../parts/file-drop';
import { FailureNotice } from '../parts/notice';
import { jsonObjectText, readJsonFile } from '../parts/read-json-file';
import { ShownText } from '../parts/shown-text';
import { useAction } from '../parts/use-action';
import { escapedText } from '../text/visible-characters';
import { Verified } from './verified';

/** Verifies a credential. */
export function VerifyPage() {
  const { api, announce } = useConsole();
  const [pasted, setPasted] = useState('');
  const [found, setFound] = useState<{ name: string; view: VerifyView }>();
  const { isRunning, failure, run } = useAction();
  const verify = (name: string, read: () => Promise<string> | string): void => {
    setFound(undefined);
    run(async () => {
      const view = await api.verify(await read());
      setFound({ name, view });
      announce(`${escapedText(name)}: ${view.outcome}.`);
    });
  };
  return (
    <>
      <h1>Verify</h1>
      <p class="note">
        The file goes to this service, which neither stores nor logs it. The result names every host that the
        service asks.
      </p>
      <div class="card ask">
        <FileDrop
          label="Credential file"
          hint="Choose it, or drop it here."
          accept=".json,application/json"
          isDisabled={isRunning}
          onFiles={([file]) => file && verify(file.name, () => readJsonFile(file))}
        />
        <form
          onSubmit={(event) => {
            event.preventDefault();
            verify('The text', () => jsonObjectText(pasted, 'The text'));
          }}
        >
          <Field label="Or paste the credential">
            {(control) => (
              <textarea
                {...control}
                class="mono"
                rows={3}
                spellcheck={false}
                value={pasted}
                onInput={({ currentTarget }) => setPasted(currentTarget.value)}
              />
            )}
          </Field>
          <button type="submit" class="main" disabled={pasted.trim() === ''} aria-disabled={isRunning}>
            Verify
          </button>
        </form>
      </div>
      <div aria-live="polite">{isRunning && <p class="dim">Verifying …</p>}</div>
      {failure && <FailureNotice failure={failure} />}
      {found && (
        <>
          <h2>
            Result for <ShownText text={found.name} longest={80} />
          </h2>
          <Verified view={found.view} />
        </>
      )}
    </>
  );
}
