import { useId, useState } from 'preact/hooks';
import type { EventDetails } from '../../service/console/views';
import { useConsole, useMayChange } from '../frame/console-context';
import { FailureNotice, Notice } from '../parts/notice';
import { ShownText } from '../parts/shown-text';
import { Table, type Column } from '../parts/table';
import { useAction } from '../parts/use-action';
import { When } from '../parts/when';
import type { Subscription } from '../requests/api';
import { DeliveryState } from './delivery-state';
import { NextAttempt } from './next-attempt';
import { redeliveryResult } from './redelivery-result';

type Delivery = EventDetails['deliveries'][number];
type Attempt = Delivery['attempts'][number];

const COLUMNS: readonly Column<Attempt>[] = [
  { head: 'Attempt', cell: ({ attempt }) => attempt, isNumber: true },
  { head: 'Time', cell: ({ attemptedAt }) => <When at={attemptedAt} /> },
  { head: 'Status', cell: ({ status }) => status ?? <span class="dim">no answer</span>, isNumber: true },
  { head: 'Milliseconds', cell: ({ milliseconds }) => milliseconds.toLocaleString('en'), isNumber: true },
  {
    head: 'Error',
    cell: ({ error }) => (error === null ? <span class="dim">none</span> : <ShownText text={error} />),
  },
];

interface Props {
  eventId: string;
  delivery: Delivery;
  /** Undefined if it is not known. */
  subscriptionState: Subscription['config']['state'] | undefined;
  onChange: () => void;
}

const NOT_SENT = 'the subscription does not want this event now, or the event was removed because it was old';

/** An event in one subscription. */
export function EventDelivery({ eventId, delivery, subscriptionState, onChange }: Props) {
  const { subscription, state, headers, attempts } = delivery;
  const { api } = useConsole();
  const mayChange = useMayChange();
  const { isRunning, failure, run } = useAction();
  const [result, setResult] = useState<ReturnType<typeof redeliveryResult>>();
  const heading = useId();
  const redeliver = async (): Promise<void> => {
    const redelivery = await api.redeliver(subscription, { event: eventId });
    setResult(redeliveryResult(redelivery, NOT_SENT));
    onChange();
  };
  return (
    <section class="card" aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          Subscription <span class="wrap">{subscription}</span>
        </h2>
        <span>
          <DeliveryState state={state} />{' '}
          <span class="dim">
            <NextAttempt delivery={delivery} subscription={subscriptionState} />
          </span>
        </span>
      </header>
      {mayChange && (state === 'dead' || state === 'delivered' || state === 'failed') && (
        <p>
          <button type="button" aria-disabled={isRunning} onClick={() => run(redeliver)}>
            {state === 'failed' ? 'Deliver now' : 'Deliver again'}
          </button>
        </p>
      )}
      {result && <Notice tone={result.tone}>{result.words}</Notice>}
      {failure && <FailureNotice failure={failure} />}
      <h3>Attempts</h3>
      {attempts.length === 0 ? (
        <p class="dim">None yet.</p>
      ) : (
        <Table
          caption={`Attempts for the subscription ${subscription}`}
          columns={COLUMNS}
          rows={attempts}
          keyOf={({ attempt, attemptedAt }) => `${attempt} ${attemptedAt}`}
        />
      )}
      <details>
        <summary>Headers as they would be sent now</summary>
        <ShownText
          block="Headers"
          text={Object.entries(headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\n')}
        />
      </details>
    </section>
  );
}
