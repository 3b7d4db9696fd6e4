import type { TokenView } from '../../service/console/views';
import { Party } from '../parts/party';
import { sentenceOf } from './operation-words';

interface Props {
  next: TokenView['next'];
  token: TokenView;
  names: ReadonlyMap<string, string>;
}

/** The operations that are possible next, each with the account that may send it. */
export function NextOperations({ next, token: { beneficiary, holder }, names }: Props) {
  const rolesOf = (address: string): string => {
    const roles = [
      ...(address === beneficiary ? ['beneficiary'] : []),
      ...(address === holder ? ['holder'] : []),
    ];
    return roles.length === 0 ? '' : ` (${roles.join(' and ')})`;
  };
  return (
    <section class="card" aria-labelledby="next">
      <h2 id="next">Possible next operations</h2>
      {next.length === 0 ? (
        <p>No operation is possible any more.</p>
      ) : (
        <ul class="next">
          {next.map((possible) => (
            <li key={possible.operation + possible.by}>
              {sentenceOf(possible).map((part, index) =>
                'words' in part ? (
                  part.words
                ) : (
                  <span key={index}>
                    <Party address={part.address} names={names} isPlain />
                    {index === 0 && rolesOf(part.address)}
                  </span>
                ),
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
