import { useId, useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { Dialog } from '../parts/dialog';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import { FactsList, ShownText, StateMark, When, type Mark, type Tone } from '../parts/values';
import type { Subscription } from '../requests/api';
import { RequestFailure } from '../requests/request';
import { countOf } from '../text/words';
import { conditionsOf } from './filter-words';

const MARKS: Record<Subscription['config']['state'], Mark> = {
  active: { tone: 'good', shape: 'check' },
  paused: { tone: 'plain', shape: 'pause' },
  gone: { tone: 'bad', shape: 'cross' },
};

/** The subscription of the settings. */
const DEFAULT = 'default';

interface Props {
  subscription: Subscription;
  onChange: () => void;
}

export function SubscriptionCard({ subscription, onChange }: Props) {
  const { id, sink, config, failingSince, scope } = subscription;
  const mayChange = useMayChange();
  const heading = useId();
  return (
    <article class="card" aria-labelledby={heading}>
      <header>
        <h2 id={heading} class="wrap">
          {id}
        </h2>
        {failingSince === undefined ? (
          <StateMark word={config.state} {...MARKS[config.state]} />
        ) : (
          <StateMark word="failing" tone="bad" shape="warning" />
        )}
      </header>
      <FactsList
        rows={[
          ['Sink', <ShownText text={sink} longest={200} />],
          [
            'Failing since',
            failingSince !== undefined && (
              <span class="failing">
                <When at={Date.parse(failingSince)} />
              </span>
            ),
          ],
          [
            'Events',
            conditionsOf(subscription).map((words) => (
              <div key={words}>
                <ShownText text={words} />
              </div>
            )),
          ],
          ['Scope of its key', scope && conditionsOf({ filters: scope }).join(', and ')],
          ['Protocol', protocolOf(subscription)],
          ['Deliveries', <a href={hrefOf('deliveries', { subscription: id })}>Show its deliveries</a>],
        ]}
      />
      {config.state === 'gone' && (
        <p class="note">
          The sink answered 410 Gone. Its events are kept, and are sent when the subscription is resumed.
        </p>
      )}
      {id === DEFAULT && (
        <p class="note">It is the webhook of WEBHOOK_URL and the settings: here it can only be paused.</p>
      )}
      {mayChange && <Buttons subscription={subscription} onChange={onChange} />}
    </article>
  );
}

function protocolOf({ protocol, config, protocolsettings }: Subscription): string {
  const headers = Object.keys(protocolsettings.headers ?? {}).length;
  const parts = [
    protocol,
    config.contentType,
    config.standardWebhooks && 'Standard Webhooks',
    config.retractions && 'retractions',
    headers > 0 && countOf(headers, 'secret header'),
  ];
  return parts.filter((part) => part !== false).join(', ');
}

function Buttons({ subscription, onChange }: Props) {
  const { id, config } = subscription;
  const { api } = useConsole();
  const { isRunning, failure, run } = useAction();
  const [result, setResult] = useState<{ tone: Tone; words: string }>();
  const [isDeleting, setDeleting] = useState(false);
  const isDefault = id === DEFAULT;
  const isActive = config.state === 'active';

  const change = async (): Promise<void> => {
    const state = isActive ? 'paused' : 'active';
    const { config: latest, ...others } = await api.subscription(id);
    await api.replaceSubscription(
      id,
      isDefault ? { config: { state } } : { ...others, config: { ...latest, state } },
    );
    setResult({ tone: 'good', words: isActive ? 'Paused. Its events are kept.' : 'Active again.' });
    onChange();
  };
  const test = async (): Promise<void> => {
    const { isDelivered, status, error, milliseconds } = await api.testSubscription(id);
    const answer = status === null ? 'The sink did not answer' : `The sink answered ${status}`;
    const reason = error === null || error === `answered ${status}` ? '' : `: ${error}`;
    setResult({
      tone: isDelivered ? 'good' : 'bad',
      words: `${answer} in ${milliseconds.toLocaleString('en')} ms${reason}`,
    });
  };
  const button = (word: string, onClick: () => void, kind?: 'danger') => (
    <button
      type="button"
      class={kind}
      aria-disabled={isRunning}
      aria-label={`${word} ${id}`}
      onClick={onClick}
    >
      {word}
    </button>
  );
  return (
    <>
      <p class="buttons">
        {button(isActive ? 'Pause' : 'Resume', () => run(change))}
        {!isDefault && button('Test', () => run(test))}
        {!isDefault && button('Delete', () => setDeleting(true), 'danger')}
      </p>
      {result && (
        <Notice tone={result.tone}>
          <ShownText text={result.words} />
        </Notice>
      )}
      <FailureNotice failure={failure} />
      {isDeleting && (
        <DeleteDialog
          subscription={subscription}
          onClose={() => {
            setDeleting(false);
            onChange();
          }}
        />
      )}
    </>
  );
}

interface DeleteProps {
  subscription: Subscription;
  onClose: () => void;
}

/** Asks before a subscription is deleted, and again if events would be lost. */
function DeleteDialog({ subscription: { id, sink }, onClose }: DeleteProps) {
  const { api, announce } = useConsole();
  const action = useAction();
  const [undelivered, setUndelivered] = useState<string>();
  const remove = async (): Promise<void> => {
    try {
      await api.deleteSubscription(id, { force: undelivered !== undefined });
    } catch (error) {
      if (!(error instanceof RequestFailure) || error.code !== 'SUBSCRIPTION_UNDELIVERED') throw error;
      // Its second sentence is for those who send requests.
      setUndelivered(error.message.replace(/\. .*/s, '.'));
      return;
    }
    announce('The subscription is deleted.');
    onClose();
  };
  return (
    <Dialog
      title="Delete the subscription"
      verb={undelivered === undefined ? 'Delete' : 'Delete with its undelivered events'}
      isDanger
      {...{ action, onClose }}
      onSubmit={remove}
    >
      <p>
        <ShownText text={sink} longest={200} /> gets no further event. The page Deliveries no longer shows its
        deliveries.
      </p>
      {undelivered !== undefined && (
        <Notice tone="bad" word="Not delivered">
          <ShownText text={undelivered} />
        </Notice>
      )}
    </Dialog>
  );
}
