import { useEffect, useRef } from 'preact/hooks';
import type { TokenView } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { OperationItem } from './operation-item';
import { OPERATION_TITLES } from './operation-words';

interface Props {
  token: TokenView;
  names: ReadonlyMap<string, string>;
}

/** The endorsement chain, the oldest operation first. */
export function Timeline({ token, names }: Props) {
  const { operations, isWhole, explorerUrl, credentialId } = token;
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
            explorerUrl={explorerUrl}
            hasCredential={credentialId !== null}
            names={names}
          />
        ))}
      </ol>
    </section>
  );
}
