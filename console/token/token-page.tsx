import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { goTo } from '../frame/use-route';
import { Field } from '../parts/field';
import { problemAt } from '../parts/field-problem';
import { FileDrop } from '../parts/file-drop';
import { WhenLoaded } from '../parts/loading';
import { FailureNotice } from '../parts/notice';
import { ShownText } from '../parts/shown-text';
import { readJsonFile } from '../parts/read-json-file';
import { useAction } from '../parts/use-action';
import { useLoaded } from '../requests/use-loaded';
import { IssuedDocuments } from './issued-documents';
import { TokenDetails } from './token-details';

/** A credential that was chosen. It is in this tab's memory only, never in the address. */
interface Chosen {
  name: string;
  /** Distinguishes it from the file that was chosen before. */
  number: number;
  credential: unknown;
}

/** The parts of a credential, or of an answer of POST /create, that name its token. */
function namesOf(file: { signedW3CDocument?: unknown; id?: unknown; credentialStatus?: unknown }): unknown {
  const { id, credentialStatus } = (file.signedW3CDocument ?? file) as typeof file;
  return { id, credentialStatus };
}

/** One token, found by its id or by its credential. */
export function TokenPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { api, facts } = useConsole();
  const { id = '', registry } = query;
  const [typed, setTyped] = useState(id);
  const [chosen, setChosen] = useState<Chosen>();
  const files = useRef(0);
  const { failure: fileFailure, run } = useAction();
  useEffect(() => {
    setTyped(id);
    if (id !== '') setChosen(undefined);
  }, [id, registry]);

  const key = chosen ? `file ${chosen.number}` : id === '' ? undefined : `id ${id} ${registry ?? ''}`;
  const question = chosen
    ? { credential: chosen.credential }
    : { tokenId: id, ...(registry !== undefined && { registry }) };
  const loaded = useLoaded(key, (signal) => api.token(question, signal));

  const wrongId = problemAt(loaded.failure, '/tokenId');

  const choose = async (file: File): Promise<void> => {
    setChosen(undefined);
    const credential = namesOf(JSON.parse(await readJsonFile(file)) as object);
    setChosen({ name: file.name, number: ++files.current, credential });
    setTyped('');
    // The address must not name another token than the page. Browsers do not tell of a script's changes.
    history.replaceState(null, '', hrefOf('token'));
    dispatchEvent(new HashChangeEvent('hashchange'));
  };
  return (
    <>
      <h1>Token</h1>
      <div class="card ask">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setChosen(undefined);
            // The registry of the address is that of the id beside it.
            const isSame = !chosen && typed.trim() === id;
            goTo(hrefOf('token', { id: typed.trim(), ...(isSame && { registry }) }));
          }}
        >
          <Field label="Token id" hint="Hexadecimal or decimal digits." problems={wrongId ? [wrongId] : []}>
            {(control) => (
              <span class="joined">
                <input
                  {...control}
                  type="text"
                  class="mono"
                  name="tokenId"
                  autocomplete="off"
                  spellcheck={false}
                  value={typed}
                  onInput={({ currentTarget }) => setTyped(currentTarget.value)}
                />
                <button type="submit" class="main" disabled={typed.trim() === ''}>
                  Show
                </button>
              </span>
            )}
          </Field>
        </form>
        <FileDrop
          label="Credential file"
          hint="It decrypts the remarks. It goes to this service only, which keeps nothing of it."
          accept=".json,application/json"
          onFiles={([file]) => file && run(() => choose(file))}
        />
        {fileFailure && <FailureNotice failure={fileFailure} />}
        {chosen && (
          <p class="dim">
            Read from <ShownText text={chosen.name} longest={80} />, which is not verified here:{' '}
            <a href={hrefOf('verify')}>Verify</a> checks it.
          </p>
        )}
      </div>
      {key !== undefined
        ? !wrongId && <WhenLoaded loaded={loaded}>{(token) => <TokenDetails token={token} />}</WhenLoaded>
        : facts.canIssue && <IssuedDocuments />}
    </>
  );
}
