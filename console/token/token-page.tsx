import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { TokenEvent } from '../../client/events';
import { EventLink } from '../deliveries/delivery-parts';
import { goTo, replaceAddress } from '../frame/address';
import { useConsole, type ConsoleContext } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { FailureNotice, useAction, WhenLoaded } from '../parts/feedback';
import { Field, FileDrop, readJsonFile } from '../parts/fields';
import { Table, type Column, type TableProps } from '../parts/table';
import { Party, ShownText, TokenLink, When } from '../parts/values';
import type { Api, Issuance, TokenQuestion } from '../requests/api';
import { failureFrom } from '../requests/request';
import { useLoaded, type Loaded } from '../requests/use-loaded';
import { TokenDetails } from './token-details';
import { tokenOfFile } from './token-of-file';

/** One token, found by its id or by its credential. */
export function TokenPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { api, facts, session } = useConsole();
  const { id = '', registry } = query;
  const [typed, setTyped] = useState(id);
  /** A credential is in this tab's memory only, never in the address. Each has a number of its own. */
  const [chosen, setChosen] = useState<{ name: string; number: number; question: TokenQuestion }>();
  const files = useRef(0);
  const { failure: fileFailure, run } = useAction();
  useEffect(() => {
    setTyped(id);
    if (id !== '') setChosen(undefined);
  }, [id, registry]);

  const key = chosen ? `file ${chosen.number}` : id === '' ? undefined : `id ${id} ${registry ?? ''}`;
  const question = chosen?.question ?? { tokenId: id, registry };
  const loaded = useLoaded(key, (signal) => api.token(question, signal));

  const isWrongId = loaded.failure?.code === 'TOKEN_ID_INVALID';

  const choose = async (file: File): Promise<void> => {
    setChosen(undefined);
    setTyped('');
    // The address must not name another token than the page.
    replaceAddress(hrefOf('token'));
    const named = tokenOfFile(JSON.parse(await readJsonFile(file)));
    setChosen({ name: file.name, number: ++files.current, question: named });
  };
  return (
    <>
      <h1>Token</h1>
      <div class="card ask">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setChosen(undefined);
            // The registry in the address belongs to the id in the address, and to no other.
            const isSame = !chosen && typed.trim() === id;
            goTo(hrefOf('token', { id: typed.trim(), ...(isSame && { registry }) }));
          }}
        >
          <Field
            label="Token id"
            hint="Hexadecimal or decimal digits."
            problems={
              isWrongId && loaded.failure ? [{ message: loaded.failure.message, isRefused: true }] : []
            }
          >
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
          hint={
            'It decrypts the remarks. Only its id and its token go to this service, which stores neither; ' +
            "its log names the token's id."
          }
          accept=".json,.tt,application/json"
          onFiles={([file]) => file && run(() => choose(file))}
        />
        <FailureNotice failure={fileFailure} />
        {chosen && (
          <p class="dim">
            Read from <ShownText text={chosen.name} longest={80} />, which is not verified here.{' '}
            {!session.holder && <a href={hrefOf('verify')}>Verify it</a>}
          </p>
        )}
      </div>
      {key !== undefined
        ? !isWrongId && (
            <WhenLoaded loaded={loaded}>
              {(token) => (
                <TokenDetails token={token} hasCredential={chosen?.question.credentialId !== undefined} />
              )}
            </WhenLoaded>
          )
        : !fileFailure && (session.holder ? <OwnTokens /> : facts.canIssue && <IssuedDocuments />)}
    </>
  );
}

const MOST = 20;
const MOST_ROWS = 200;

const COLUMNS: readonly Column<Issuance>[] = [
  {
    head: 'Number',
    cell: ({ blNumber }) =>
      blNumber === undefined ? <span class="dim">—</span> : <ShownText text={blNumber} />,
  },
  {
    head: 'Token',
    cell: ({ tokenId }) => <TokenLink id={tokenId} />,
  },
  { head: 'Issued', cell: ({ createdAt }) => <When at={Date.parse(createdAt)} isPast /> },
  { head: 'Mint', cell: ({ state }) => state },
  { head: 'First beneficiary', cell: ({ owner }) => <Party address={owner} /> },
  { head: 'First holder', cell: ({ holder }) => <Party address={holder} /> },
];

interface ListProps<T> extends Omit<TableProps<T>, 'rows' | 'isCut'> {
  title: string;
  loaded: Loaded<readonly T[]>;
}

/** Tokens for those who do not know a token id. */
function TokenList<T>({ title, loaded, ...table }: ListProps<T>) {
  const heading = useId();
  return (
    <section class="stack" aria-labelledby={heading}>
      <h2 id={heading}>{title}</h2>
      <WhenLoaded loaded={loaded}>
        {(rows) => <Table {...table} rows={rows.slice(0, MOST_ROWS)} isCut={rows.length > MOST_ROWS} />}
      </WhenLoaded>
    </section>
  );
}

/** The newest documents of this service. */
function IssuedDocuments() {
  const { api } = useConsole();
  return (
    <TokenList
      title="Documents of this service"
      caption="Documents, the newest first"
      loaded={useLoaded('documents', (signal) => api.documents(MOST, signal))}
      columns={COLUMNS}
      keyOf={({ tokenId }) => tokenId}
      empty="None was issued yet."
    />
  );
}

/** The tokens in the scope of a key, of which the service keeps events. */
function OwnTokens() {
  const loaded = useLoaded('own tokens', useConsole().readTokens);
  // Tokens that are read so far are shown, until none is new.
  useEffect(loaded.reload, [loaded.data]);
  return (
    <TokenList
      title="Your tokens"
      caption="Tokens, those of the newest events first"
      loaded={loaded}
      columns={OWN_COLUMNS}
      keyOf={tokenOf}
      empty="The service keeps no event of a token of yours."
    />
  );
}

const OWN_COLUMNS: readonly Column<TokenEvent>[] = [
  {
    head: 'Token',
    cell: ({ source, data }) => <TokenLink id={data.tokenIdHex} registry={registryOf(source)} />,
  },
  { head: 'Last event', cell: ({ id, type }) => <EventLink id={id} type={type} /> },
  { head: 'Time', cell: ({ time }) => <When at={Date.parse(time)} isPast /> },
];

const registryOf = (source: string): string => source.replace('urn:service:', '');

const tokenOf = ({ source, subject }: TokenEvent): string => `${source}/${subject}`;

/** Requests of one call, unless they found no token. */
const PAGES = 10;

/** A call that finds nothing new resolves to the same list. */
export function readOwnTokens(api: Pick<Api, 'events'>): ConsoleContext['readTokens'] {
  const last = new Map<string, TokenEvent>();
  let newest: readonly TokenEvent[] | undefined;
  let cursor = '';
  return async (signal) => {
    let after: string | undefined;
    for (let pages = 0; after !== cursor && (pages < PAGES || last.size === 0); pages++) {
      after = cursor;
      const page = await api.events(after, signal).catch((thrown: unknown) => {
        if (['CURSOR_EXPIRED', 'CURSOR_INVALID'].includes(failureFrom(thrown).code)) cursor = '';
        throw thrown;
      });
      for (const { body } of page.events) {
        const event = JSON.parse(body) as TokenEvent;
        // Events of a registry have none.
        if ('tokenIdHex' in event.data) last.set(tokenOf(event), event);
      }
      if (page.events.length > 0) newest = undefined;
      cursor = page.cursor;
    }
    // More is left.
    if (after !== cursor) newest = undefined;
    return (newest ??= [...last.values()].sort((one, other) => other.time.localeCompare(one.time)));
  };
}
