import { useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { Dialog } from '../parts/dialog';
import { ListTitle, useAction, WhenLoaded } from '../parts/feedback';
import { problemsAt } from '../parts/field-problem';
import { fieldsOf, LinesField, SelectField, TextField } from '../parts/fields';
import { Table, type Column } from '../parts/table';
import { ShownText, StateMark, When } from '../parts/values';
import type { AccessKey, KeyRequest } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';
import { absoluteTime, linesOf, withShortHex } from '../text/words';

/** The keys with a scope, and a new one. */
export function KeysPage() {
  const { api } = useConsole();
  const mayChange = useMayChange();
  const loaded = useLoaded('keys', api.keys);
  const [dialog, setDialog] = useState<'create' | AccessKey>();
  const close = (): void => {
    setDialog(undefined);
    loaded.reload();
  };
  const state = (key: AccessKey) => (
    <div class="buttons">
      {key.isLive && <StateMark tone="good" word="live" />}
      {!key.isLive && <StateMark tone="plain" word={isOver(key) ? 'ended' : 'revoked'} />}
      {mayChange && key.isLive && (
        <button type="button" aria-label={`Revoke ${key.name}`} onClick={() => setDialog(key)}>
          Revoke
        </button>
      )}
    </div>
  );
  return (
    <>
      <ListTitle noun="key" onCreate={() => setDialog('create')} />
      <WhenLoaded loaded={loaded}>
        {({ entries, hasMore }) => (
          <Table
            caption="Keys with a scope, the newest first"
            columns={[...COLUMNS, { head: 'State', cell: state }]}
            rows={entries}
            isCut={hasMore}
            keyOf={({ id }) => id}
            empty="There are no keys with a scope."
          />
        )}
      </WhenLoaded>
      {dialog === 'create' && <CreateDialog onClose={close} />}
      {typeof dialog === 'object' && <RevokeDialog accessKey={dialog} onClose={close} />}
    </>
  );
}

const COLUMNS: readonly Column<AccessKey>[] = [
  { head: 'Name', cell: ({ name }) => <ShownText text={name} /> },
  {
    head: 'Scope',
    cell: ({ scope }) => <div>{Object.values(scope).flatMap((entries) => entries.map(scopeEntry))}</div>,
  },
  { head: 'May', cell: ({ may }) => may.join(', ') },
  { head: 'End', cell: ({ expiresAt }) => <When at={Date.parse(expiresAt)} /> },
  { head: 'Hour of last use', cell: ({ usedAt }) => (usedAt === null ? 'never' : hourOf(usedAt)) },
];

const scopeEntry = (entry: string) => (
  <div class="wrap" title={entry}>
    {withShortHex(entry)}
  </div>
);
const isOver = ({ expiresAt }: AccessKey): boolean => Date.parse(expiresAt) <= Date.now();
const hourOf = (time: string): string => absoluteTime(Date.parse(time)).replace(':00 ', ' ');

const EMPTY = { name: '', scope: '', may: 'read', lastDay: '' };
const MAY = ['read', 'read, subscribe'].map((may) => [may, may] as const);
const NAME_HINT = 'The holder. Keys of one name and one scope have the same subscriptions.';
const SCOPE_HINT =
  'One in each line: a party eip155:1:0x…, a registry urn:service:1:0x…, or a token urn:service:1:0x…/123.';

function keyRequestOf({ name, may, lastDay, ...draft }: typeof EMPTY): KeyRequest {
  const scope: KeyRequest['scope'] = {};
  for (const entry of linesOf(draft.scope)) {
    const list = entry.startsWith('eip155:') ? 'parties' : entry.includes('/') ? 'tokens' : 'registries';
    (scope[list] ??= []).push(entry);
  }
  return { name, scope, may: may.split(', ') as AccessKey['may'], expiresAt: `${lastDay}T23:59:59Z` };
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const { api, setCreated } = useConsole();
  const [draft, setDraft] = useState(EMPTY);
  const action = useAction();
  const problems = problemsAt(action.failure, {
    name: '/name',
    scope: '/scope',
    may: '/may',
    lastDay: '/expiresAt',
  });
  const create = async (): Promise<void> => {
    const { name, key: value } = await api.createKey(keyRequestOf(draft));
    setCreated({ noun: 'key', name, secret: { what: 'key', value } });
    onClose();
  };
  const field = fieldsOf(draft, setDraft, problems);
  return (
    <Dialog title="Create a key" verb="Create" {...{ action, problems, onClose }} onSubmit={create}>
      <TextField label="Name" isRequired hint={NAME_HINT} input={{ required: true }} {...field('name')} />
      <LinesField label="Scope" isRequired hint={SCOPE_HINT} rows={3} {...field('scope')} />
      <SelectField label="May" options={MAY} {...field('may')} />
      <TextField
        label="Last day, in UTC"
        isRequired
        input={{ type: 'date', required: true }}
        {...field('lastDay')}
      />
    </Dialog>
  );
}

function RevokeDialog({ accessKey: { id, name }, onClose }: { accessKey: AccessKey; onClose: () => void }) {
  const { api, announce } = useConsole();
  const action = useAction();
  const revoke = async (): Promise<void> => {
    await api.revokeKey(id);
    announce('The key is revoked.');
    onClose();
  };
  return (
    <Dialog title="Revoke the key" verb="Revoke" isDanger {...{ action, onClose }} onSubmit={revoke}>
      <p>
        This key of <ShownText text={name} /> opens nothing from then on. The subscriptions of its name and
        scope pause when their last key ends.
      </p>
    </Dialog>
  );
}
