import { useEffect, useRef } from 'preact/hooks';
import type { EventOfToken, KnownToken } from '../../service/answers/views';
import { DeliveryState, EventLink, SubscriptionName } from '../deliveries/delivery-parts';
import { useConsole } from '../frame/console-context';
import { FactsList, Hex, Party, ShownText, When, type FactsRow } from '../parts/values';
import { capitalised, countOf } from '../text/words';
import { changesOf, explorerLink, OPERATION_TITLES } from './token-words';

interface Props {
  token: KnownToken;
  /** Whether the page was asked with a credential, which decrypts remarks. */
  hasCredential: boolean;
}

/** The operations of a token, the oldest first. */
export function EndorsementChain({ token, hasCredential }: Props) {
  const { endorsements: operations, isWhole } = token;
  const { announce } = useConsole();
  const known = useRef(operations.length);
  useEffect(() => {
    const newest = operations.at(-1);
    if (newest && operations.length > known.current) announce(`${OPERATION_TITLES[newest.operation]}.`);
    known.current = operations.length;
  }, [operations.length]);
  return (
    <section aria-labelledby="history">
      <h2 id="history">Endorsement chain</h2>
      {operations.length === 0 && <p class="dim">Nothing happened to this token yet.</p>}
      {!isWhole && operations.length > 0 && (
        <p class="note">Earlier operations were not read: the node does not give logs that are so old.</p>
      )}
      <ol class="timeline">
        {operations.map((operation, index) => (
          <OperationItem
            key={`${operation.transactionHash} ${operation.operation} ${index}`}
            operation={operation}
            isNewest={index === operations.length - 1}
            explorerUrl={token.explorerUrl}
            hasCredential={hasCredential}
          />
        ))}
      </ol>
    </section>
  );
}

interface ItemProps {
  operation: KnownToken['endorsements'][number];
  isNewest: boolean;
  explorerUrl: string | null;
  hasCredential: boolean;
}

/** One operation: its parties and its remark, and beside it its events. */
function OperationItem({ operation, isNewest, explorerUrl, hasCredential }: ItemProps) {
  const { remark, decrypted, by, sender, transactionHash, blockNumber } = operation;
  return (
    <li class={isNewest ? 'newest' : undefined}>
      <article class="card">
        <header>
          <h3>
            {OPERATION_TITLES[operation.operation]}
            {isNewest && <span class="tag">newest</span>}
          </h3>
          <span class="dim">
            <When at={Date.parse(operation.time)} isPast />
          </span>
        </header>
        <div class="halves">
          <FactsList
            rows={[
              ...changesOf(operation).map(({ role, before, after }): FactsRow => [
                capitalised(role),
                <span class="change">
                  <Party address={before} />
                  <span>
                    <span aria-hidden="true">→ </span>
                    <span class="unseen">then </span>
                    <Party address={after} />
                  </span>
                </span>,
              ]),
              [
                'Remark',
                decrypted?.kind !== 'none' && (
                  <Remark hex={remark} decrypted={decrypted} hasCredential={hasCredential} />
                ),
              ],
              ['Sent by', <Party address={sender} />],
              // Only an account with code acts in the transaction of another.
              ['Through', by !== undefined && by !== sender && <Party address={by} />],
              [
                'Transaction',
                <>
                  <Hex
                    value={transactionHash}
                    what="transaction hash"
                    href={explorerLink(explorerUrl, 'tx', transactionHash)}
                  />{' '}
                  <span class="dim">block {blockNumber.toLocaleString('en')}</span>
                </>,
              ],
            ]}
          />
          <EventList events={operation.events} />
        </div>
      </article>
    </li>
  );
}

interface RemarkProps {
  hex: string;
  /** Undefined: only its credential can decrypt it. */
  decrypted: KnownToken['endorsements'][number]['decrypted'];
  hasCredential: boolean;
}

function Remark({ hex, decrypted, hasCredential }: RemarkProps) {
  if (decrypted && 'text' in decrypted)
    return (
      <>
        <ShownText text={decrypted.text} />{' '}
        {decrypted.kind !== 'plain text' && <span class="dim">(decrypted)</span>}
      </>
    );
  const why = hasCredential
    ? 'this credential does not decrypt it'
    : 'choose the credential file to decrypt it';
  return (
    <>
      <Hex value={hex} what="remark" /> <span class="dim">({why})</span>
    </>
  );
}

/** Events of an operation, each with its deliveries. */
function EventList({ events }: { events: readonly EventOfToken[] }) {
  return (
    <div class="events">
      <h4>Events</h4>
      {events.length === 0 && <p class="dim">None is recorded yet.</p>}
      <ul class="plain">
        {events.map(({ id, type, deliveries = [] }) => (
          <li key={id}>
            <EventLink id={id} type={type} />
            <div>
              {deliveries.length === 0 && <span class="dim">for no subscription</span>}
              {deliveries.map((delivery) => (
                <DeliveryLine key={delivery.subscription} delivery={delivery} />
              ))}
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

function DeliveryLine({ delivery }: { delivery: NonNullable<EventOfToken['deliveries']>[number] }) {
  const { subscription, state, attempts, error } = delivery;
  return (
    <div>
      <DeliveryState state={state} />{' '}
      <span class="dim">
        <SubscriptionName id={subscription} />
        {attempts > 1 && `, ${countOf(attempts, 'attempt')}`}
      </span>
      {state !== 'delivered' && error !== null && (
        <div class="dim">
          <ShownText text={error} longest={120} />
        </div>
      )}
    </div>
  );
}
