import type { TokenView } from '../../service/console/views';
import { OperationItem } from './operation-item';

interface Props {
  token: TokenView;
  names: ReadonlyMap<string, string>;
}

/** The endorsement chain, the oldest operation first. */
export function Timeline({ token, names }: Props) {
  const { operations, isWhole, explorerUrl, credentialId } = token;
  return (
    <section aria-labelledby="history">
      <h2 id="history">Endorsement chain</h2>
      {operations.length === 0 && <p class="dim">Nothing happened to this token yet.</p>}
      {!isWhole && operations.length > 0 && (
        <p class="note">Earlier operations were not read: the node does not give logs that are so old.</p>
      )}
      <ol class="timeline" aria-live="polite" aria-relevant="additions">
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
