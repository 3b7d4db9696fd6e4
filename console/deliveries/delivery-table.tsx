import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { DeliveryView } from '../../service/console/views';
import { hrefOf } from '../frame/route';
import { Hex } from '../parts/hex';
import { ShownText } from '../parts/shown-text';
import { Table, type Column } from '../parts/table';
import { When } from '../parts/when';
import type { Subscription } from '../requests/api';
import { countOf } from '../text/relative-time';
import { DeliveryState } from './delivery-state';
import { EventLink } from './event-link';
import { NextAttempt } from './next-attempt';
import { SubscriptionName } from './subscription-name';
import { useHeldRows } from './use-held-rows';

interface Row extends DeliveryView {
  subscriptionState: Subscription['config']['state'] | undefined;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: 'Event', cell: ({ eventId, type }) => <EventLink id={eventId} type={type} /> },
  { head: 'State', cell: ({ state }) => <DeliveryState state={state} /> },
  {
    head: 'Token',
    cell: ({ tokenId, registry }) =>
      tokenId === null ? (
        <span class="dim">none</span>
      ) : (
        <Hex value={tokenId} what="token id" href={hrefOf('token', { id: tokenId, registry })} />
      ),
  },
  { head: 'Subscription', cell: ({ subscription }) => <SubscriptionName id={subscription} /> },
  { head: 'Attempts', cell: (row) => <Attempts row={row} /> },
  { head: 'Last answer', cell: (row) => <LastAnswer row={row} /> },
];

const keyOf = ({ eventId, subscription }: DeliveryView): string => `${eventId} ${subscription}`;

interface Props {
  deliveries: readonly DeliveryView[];
  subscriptions: readonly Subscription[];
  /** Whether somebody asked for more rows. Then the first of them gets the focus: the button is gone. */
  isMoreAsked: RefObject<boolean>;
}

/** Deliveries, the newest first. Rows keep their places while somebody points at them. */
export function DeliveryTable({ deliveries, subscriptions, isMoreAsked }: Props) {
  const { rows, waiting, holders } = useHeldRows(deliveries, keyOf);
  const states = new Map(subscriptions.map(({ id, config }) => [id, config.state]));
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(rows.length);
  useLayoutEffect(() => {
    if (isMoreAsked.current && rows.length > before.current) {
      box.current?.querySelectorAll<HTMLElement>('tbody td:first-child a')[before.current]?.focus();
      isMoreAsked.current = false;
    }
    before.current = rows.length;
  }, [rows.length]);
  return (
    <div class="stack" ref={box} {...holders}>
      <p class="dim held" role="status">
        {waiting > 0 &&
          `${countOf(waiting, 'newer delivery', 'newer deliveries')}, shown when you leave the list.`}
      </p>
      {rows.length === 0 ? (
        <p class="note">There are no such deliveries.</p>
      ) : (
        <Table
          caption="Deliveries, the newest first"
          columns={COLUMNS}
          rows={rows.map((row) => ({ ...row, subscriptionState: states.get(row.subscription) }))}
          keyOf={keyOf}
        />
      )}
    </div>
  );
}

function Attempts({ row }: { row: Row }) {
  const { attempts, lastAttemptAt, subscriptionState } = row;
  return (
    <div>
      {attempts}
      {lastAttemptAt !== null && (
        <span class="dim">
          , <When at={lastAttemptAt} isPast />
        </span>
      )}
      <div class="dim">
        <NextAttempt delivery={row} subscription={subscriptionState} />
      </div>
    </div>
  );
}

function LastAnswer({ row: { status, error } }: { row: Row }) {
  if (status === null && error === null) return <span class="dim">—</span>;
  const isPlain = error === null || error === `answered ${status}`;
  return <span>{isPlain ? status : <ShownText text={error} longest={120} />}</span>;
}
