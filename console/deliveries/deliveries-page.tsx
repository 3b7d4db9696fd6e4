import type { TargetedFocusEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { goTo } from '../frame/address';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { WhenLoaded } from '../parts/feedback';
import { SelectField } from '../parts/fields';
import { Table, type Column } from '../parts/table';
import { ShownText, TokenLink, When } from '../parts/values';
import type { FoundDelivery } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';
import { countOf } from '../text/words';
import {
  DeliveryState,
  EventLink,
  NextAttempt,
  Redeliver,
  SubscriptionName,
  useSubscriptionStates,
  type SubscriptionStates,
} from './delivery-parts';
import { inPlace } from './in-place';

const STATES = [
  ['', 'Every state'],
  ['waiting', 'Waiting'],
  ['failed', 'Waiting after a failed attempt'],
  ['dead', 'Dead letters'],
  ['delivered', 'Delivered'],
] as const;

export function DeliveriesPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { state = '', subscription = '' } = query;
  const subscriptions = useSubscriptionStates();
  const names = new Set([...subscriptions.keys(), ...(subscription ? [subscription] : [])]);
  const show = (changed: Readonly<Record<string, string>>): void => {
    goTo(hrefOf('deliveries', { state, subscription, ...changed }));
  };
  return (
    <>
      <h1>Deliveries</h1>
      <div class="filters">
        <SelectField
          label="State"
          options={STATES}
          value={state}
          onChange={(chosen) => show({ state: chosen })}
        />
        <SelectField
          label="Subscription"
          options={[['', 'Every subscription'], ...[...names].map((id) => [id, id] as const)]}
          value={subscription}
          onChange={(chosen) => show({ subscription: chosen })}
        />
      </div>
      {state === 'dead' && subscription !== '' && (
        <div class="stack">
          <Redeliver
            key={subscription}
            subscription={subscription}
            body={{ dead: true }}
            label="Deliver all dead letters of this subscription again"
            none="the subscription has no dead letters"
          />
        </div>
      )}
      <DeliveryList
        key={`${state} ${subscription}`}
        state={state}
        subscription={subscription}
        subscriptions={subscriptions}
      />
    </>
  );
}

const FIRST = 50;
/** More are not shown at once. */
const MOST = 200;

interface ListProps {
  /** Empty: every state. */
  state: string;
  /** Empty: every subscription. */
  subscription: string;
  subscriptions: SubscriptionStates;
}

/** The deliveries of a selection. Another selection needs another key. */
function DeliveryList({ state, subscription, subscriptions }: ListProps) {
  const { api, announce } = useConsole();
  const [limit, setLimit] = useState(FIRST);
  const selection = { ...(state && { state }), ...(subscription && { subscription }) };
  const loaded = useLoaded(`${state} ${subscription}`, async (signal) => ({
    ...(await api.deliveries(selection, limit, signal)),
    limit,
  }));
  useEffect(() => {
    if (limit !== FIRST) loaded.reload();
  }, [limit]);
  const count = loaded.data?.entries.length;
  useEffect(() => {
    if (count !== undefined) announce(`${countOf(count, 'delivery', 'deliveries')}.`);
  }, [count === undefined]);
  return (
    <WhenLoaded loaded={loaded}>
      {({ entries, hasMore, limit: shown }) => (
        <>
          <DeliveryTable
            deliveries={entries}
            subscriptions={subscriptions}
            isMoreAsked={limit !== FIRST}
            hasMore={hasMore}
          />
          {hasMore &&
            (shown < MOST ? (
              <button type="button" aria-disabled={limit === MOST} onClick={() => setLimit(MOST)}>
                Show more
              </button>
            ) : (
              <p class="dim">
                Only those of newer events are shown. Choose a state or a subscription to see others.
              </p>
            ))}
        </>
      )}
    </WhenLoaded>
  );
}

interface TableProps {
  deliveries: readonly FoundDelivery[];
  subscriptions: SubscriptionStates;
  /** Whether somebody asked for more rows: the first of them gets the focus of the button, which is gone. */
  isMoreAsked: boolean;
  hasMore: boolean;
}

/** Deliveries, the newest first. Rows keep their places while somebody points at them. */
function DeliveryTable({ deliveries, subscriptions, isMoreAsked, hasMore }: TableProps) {
  const { rows, waiting, holders } = useHeldRows(deliveries);
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(rows.length);
  const isMoreShown = useRef(false);
  useLayoutEffect(() => {
    if (isMoreAsked && !isMoreShown.current && rows.length > before.current) {
      box.current?.querySelectorAll<HTMLElement>('tbody td:first-child a')[before.current]?.focus();
      isMoreShown.current = true;
    }
    before.current = rows.length;
  }, [rows.length]);
  return (
    <div class="stack" ref={box} {...holders}>
      <p class="dim held" role="status">
        {waiting > 0 &&
          `${countOf(waiting, 'newer delivery', 'newer deliveries')}, shown when you leave the list.`}
      </p>
      <Table
        caption="Deliveries, the newest first"
        columns={COLUMNS}
        rows={rows.map((row) => ({ ...row, subscriptions }))}
        keyOf={keyOf}
        empty={hasMore ? 'There are none among the newer events.' : 'There are no such deliveries.'}
      />
    </div>
  );
}

type Row = FoundDelivery & { subscriptions: SubscriptionStates };

const COLUMNS: readonly Column<Row>[] = [
  { head: 'Event', cell: ({ id, type }) => <EventLink id={id} type={type} /> },
  { head: 'State', cell: ({ state }) => <DeliveryState state={state} /> },
  {
    head: 'Token',
    cell: ({ tokenIdHex: tokenId, registry }) =>
      tokenId === null ? <span class="dim">none</span> : <TokenLink id={tokenId} registry={registry} />,
  },
  { head: 'Subscription', cell: ({ subscription }) => <SubscriptionName id={subscription} /> },
  { head: 'Attempts', cell: (row) => <Attempts row={row} /> },
  { head: 'Last answer', cell: (row) => <LastAnswer row={row} /> },
];

const keyOf = ({ id, subscription }: FoundDelivery): string => `${id} ${subscription}`;

function Attempts({ row }: { row: Row }) {
  const { attempts, subscriptions } = row;
  const last = attempts.at(-1);
  return (
    <div>
      {attempts.length}
      {last && (
        <span class="dim">
          , <When at={Date.parse(last.attemptedAt)} isPast />
        </span>
      )}
      <div class="dim">
        <NextAttempt delivery={row} subscriptions={subscriptions} />
      </div>
    </div>
  );
}

function LastAnswer({ row: { attempts } }: { row: Row }) {
  const { status = null, error = null } = attempts.at(-1) ?? {};
  if (status === null && error === null) return <span class="dim">—</span>;
  const isPlain = error === null || error === `answered ${status}`;
  return <span>{isPlain ? status : <ShownText text={error} longest={120} />}</span>;
}

/**
 * Keeps rows at their places while somebody points at them or is among them with the keyboard. The known rows
 * are updated then, and new ones wait.
 */
function useHeldRows(latest: readonly FoundDelivery[]) {
  const [isPointed, setPointed] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const shown = useRef(latest);
  shown.current = isPointed || isFocused ? inPlace(shown.current, latest, keyOf) : latest;
  const keys = new Set(shown.current.map(keyOf));
  return {
    rows: shown.current,
    /** New rows that are held back. */
    waiting: latest.filter((row) => !keys.has(keyOf(row))).length,
    /** Handlers of the element around the rows. */
    holders: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: ({ currentTarget, relatedTarget }: TargetedFocusEvent<HTMLElement>) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) setFocused(false);
      },
    },
  };
}
