import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import type { DeliveryState as State } from '../../service/outbox/deliveries';
import { useConsole, useMayChange } from '../frame/console-context';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { StateMark, When, type Mark } from '../parts/values';
import type { Api, Subscription } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';
import { redeliveryResult } from './delivery-words';

/** The service tries failed deliveries again. Dead letters wait for the operator. */
const MARKS: Record<State, Mark & { word?: string }> = {
  waiting: { tone: 'plain', shape: 'clock' },
  failed: { tone: 'wait', shape: 'warning' },
  dead: { tone: 'bad', shape: 'cross', word: 'dead letter' },
  delivered: { tone: 'good', shape: 'check' },
  orphaned: { tone: 'plain', shape: 'dash' },
};

export function DeliveryState({ state }: { state: State }) {
  return <StateMark word={state} {...MARKS[state]} />;
}

/** The state of each subscription that is known, by its id. */
export type SubscriptionStates = ReadonlyMap<string, Subscription['config']['state']>;

export function useSubscriptionStates(): SubscriptionStates {
  const { api, session } = useConsole();
  const isListed = session.holder?.may.includes('subscribe') !== false;
  const { data = [] } = useLoaded(isListed ? 'subscriptions' : undefined, api.subscriptions);
  return new Map(data.map(({ id, config }) => [id, config.state]));
}

interface NextProps {
  delivery: { subscription: string; state: State; nextAttemptAt: string | null };
  subscriptions: SubscriptionStates;
}

/** The time, or the condition, of the next attempt of a delivery that waits. */
export function NextAttempt({ delivery, subscriptions }: NextProps) {
  const { subscription, state, nextAttemptAt } = delivery;
  if (state !== 'waiting' && state !== 'failed') return null;
  const isActive = (subscriptions.get(subscription) ?? 'active') === 'active';
  if (!isActive) return <>next when the subscription is resumed</>;
  if (nextAttemptAt === null) return <>waits for an earlier event of its token</>;
  return (
    <>
      next <When at={Date.parse(nextAttemptAt)} />
    </>
  );
}

/** The type of an event without the prefix that all have. */
export function shortType(type: string): string {
  return type.slice(type.lastIndexOf('.') + 1);
}

/** The type of an event as a link to it. Long types break after an underscore. */
export function EventLink({ id, type }: { id: string; type: string }) {
  return (
    <a href={`#/events/${encodeURIComponent(id)}`}>
      {shortType(type)
        .split(/(?<=_)/)
        .map((part, index) => (
          <Fragment key={index}>
            {index > 0 && <wbr />}
            {part}
          </Fragment>
        ))}
    </a>
  );
}

/** A subscription. Its id is a UUID: the beginning is a time, and only the end tells it from others. */
export function SubscriptionName({ id }: { id: string }) {
  return (
    <span class="nowrap" title={id}>
      {id.length > 12 ? `…${id.slice(-8)}` : id}
    </span>
  );
}

interface RedeliverProps {
  subscription: string;
  body: Parameters<Api['redeliver']>[1];
  /** The words of the button. Without them only the last result is shown. */
  label: string | undefined;
  /** Why nothing is sent, if that is the result. */
  none: string;
  onDone?: () => void;
}

/** A button that delivers again, for those who may, and the result. */
export function Redeliver({ subscription, body, label, none, onDone }: RedeliverProps) {
  const { api } = useConsole();
  const mayChange = useMayChange();
  const { isRunning, failure, run } = useAction();
  const [result, setResult] = useState<ReturnType<typeof redeliveryResult>>();
  const redeliver = async (): Promise<void> => {
    setResult(redeliveryResult(await api.redeliver(subscription, body), none));
    onDone?.();
  };
  return (
    <>
      {mayChange && label !== undefined && (
        <p>
          <button type="button" aria-disabled={isRunning} onClick={() => run(redeliver)}>
            {label}
          </button>
        </p>
      )}
      {result && <Notice tone={result.tone}>{result.words}</Notice>}
      <FailureNotice failure={failure} />
    </>
  );
}
