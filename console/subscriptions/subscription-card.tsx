import { useId, useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { FactsList, ShownText, StateMark, When, type Mark, type Tone } from '../parts/values';
import { FailureNotice, Notice, useAction } from '../parts/feedback';
import type { Subscription } from '../requests/api';
import { countOf } from '../text/words';
import { DeleteDialog } from './delete-dialog';
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

/** A subscription, and what can be done with it. */
export function SubscriptionCard({ subscription, onChange }: Props) {
  const { id, sink, config, failingSince, protocol } = subscription;
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
            failingSince === undefined ? undefined : (
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
          ['Protocol', `${protocol}, ${config.contentType}${optionsOf(subscription)}`],
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

function optionsOf({ config, protocolsettings }: Subscription): string {
  const headers = Object.keys(protocolsettings.headers ?? {}).length;
  const options = [
    ...(config.standardWebhooks ? ['Standard Webhooks'] : []),
    ...(config.retractions ? ['retractions'] : []),
    ...(headers > 0 ? [countOf(headers, 'secret header')] : []),
  ];
  return options.map((option) => `, ${option}`).join('');
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
  return (
    <>
      <p class="buttons">
        <button
          type="button"
          aria-disabled={isRunning}
          onClick={() => run(change)}
          aria-label={`${isActive ? 'Pause' : 'Resume'} ${id}`}
        >
          {isActive ? 'Pause' : 'Resume'}
        </button>
        {!isDefault && (
          <>
            <button
              type="button"
              aria-disabled={isRunning}
              onClick={() => run(test)}
              aria-label={`Test ${id}`}
            >
              Test
            </button>
            <button
              type="button"
              class="danger"
              aria-disabled={isRunning}
              onClick={() => setDeleting(true)}
              aria-label={`Delete ${id}`}
            >
              Delete
            </button>
          </>
        )}
      </p>
      {result && (
        <Notice tone={result.tone}>
          <ShownText text={result.words} />
        </Notice>
      )}
      <FailureNotice failure={failure} />
      {isDeleting && (
        <DeleteDialog subscription={subscription} onClose={() => setDeleting(false)} onDeleted={onChange} />
      )}
    </>
  );
}
