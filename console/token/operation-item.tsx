import type { OperationView } from '../../service/console/views';
import { EventList } from '../deliveries/event-list';
import { Hex } from '../parts/hex';
import { FactsList } from '../parts/facts-list';
import { Party } from '../parts/party';
import { ShownText } from '../parts/shown-text';
import { When } from '../parts/when';
import { explorerLink } from './explorer-link';
import { changesOf, OPERATION_TITLES } from './operation-words';

interface Props {
  operation: OperationView;
  isNewest: boolean;
  explorerUrl: string | null;
  /** Whether the page was asked with a credential, which decrypts remarks. */
  hasCredential: boolean;
  names: ReadonlyMap<string, string>;
}

/** One operation: its parties and its remark, and beside it its events. */
export function OperationItem({ operation, isNewest, explorerUrl, hasCredential, names }: Props) {
  const { remark, sender, transactionHash, blockNumber } = operation;
  return (
    <li class={isNewest ? 'newest' : undefined}>
      <article class="card">
        <header>
          <h3>
            {OPERATION_TITLES[operation.operation]}
            {isNewest && <span class="tag">newest</span>}
          </h3>
          <span class="dim">
            <When at={operation.at} isPast />
          </span>
        </header>
        <div class="halves">
          <FactsList
            rows={[
              ...changesOf(operation).map(
                ({ role, before, after }) =>
                  [
                    `${role.charAt(0).toUpperCase()}${role.slice(1)}`,
                    <span class="change">
                      <Party address={before} names={names} />
                      <span>
                        <span aria-hidden="true">→ </span>
                        <span class="unseen">then </span>
                        <Party address={after} names={names} />
                      </span>
                    </span>,
                  ] as const,
              ),
              [
                'Remark',
                remark === null ? undefined : <Remark remark={remark} hasCredential={hasCredential} />,
              ],
              ['Sent by', <Party address={sender} names={names} />],
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

function Remark({
  remark: { hex, text, isEncrypted },
  hasCredential,
}: {
  remark: NonNullable<OperationView['remark']>;
  hasCredential: boolean;
}) {
  if (text !== null)
    return (
      <>
        <ShownText text={text} /> {isEncrypted && <span class="dim">(decrypted)</span>}
      </>
    );
  const why = isEncrypted
    ? hasCredential
      ? 'this credential does not decrypt it'
      : 'choose the credential file to decrypt it'
    : 'it is no text';
  return (
    <>
      <Hex value={hex} what="remark" /> <span class="dim">({why})</span>
    </>
  );
}
