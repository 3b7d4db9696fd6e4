import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { accountNames } from '../../cli/terminal/printable';
import type { TokenView } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { DownloadButton, ProgressLine } from '../issuing/issued-document';
import { FactsList, Hex, Party, ShortForms, ShownText } from '../parts/values';
import { EndorsementChain } from './endorsement-chain';
import { explorerLink, sentenceOf } from './token-words';

/** A token as it is now, and how it came there. */
export function TokenDetails({ token }: { token: TokenView }) {
  const { announce } = useConsole();
  useEffect(() => announce(`Token ${token.state}.`), [token.tokenId]);
  const party = (address: string | null): ComponentChildren =>
    address !== null && <Party address={address} />;
  const { registry, titleEscrow, explorerUrl, issuing } = token;
  return (
    <ShortForms.Provider value={accountNames(addressesOf(token))}>
      <section class="card" aria-labelledby="now">
        <h2 id="now">Now</h2>
        <StateDiagram state={token.state} />
        {token.state === 'not minted' && !issuing && (
          <p class="note">
            This registry never had a token with this id. A local chain that was started anew has none of the
            earlier ones.
          </p>
        )}
        {token.isPaused && (
          <p class="note">The registry is paused: nothing is possible until its admin unpauses it.</p>
        )}
        <div class="halves">
          <FactsList
            rows={[
              ['Beneficiary', party(token.beneficiary)],
              ['Holder', party(token.holder)],
              ['Nominee', party(token.nominee)],
              ['Previous beneficiary', party(token.previousBeneficiary)],
              ['Previous holder', party(token.previousHolder)],
            ]}
          />
          <FactsList
            rows={[
              ['Bill of Lading', issuing?.blNumber != null && <ShownText text={issuing.blNumber} />],
              ['Token id', <Hex value={token.tokenId} what="token id" />],
              [
                'Registry',
                <Hex
                  value={registry}
                  what="address of the registry"
                  href={explorerLink(explorerUrl, 'address', registry)}
                />,
              ],
              ['Network', `${token.network}, chain ${token.chainId}`],
              [
                'Title escrow',
                titleEscrow !== null && <Hex value={titleEscrow} what="address of the title escrow" />,
              ],
              ['Read at block', token.block.toLocaleString('en')],
            ]}
          />
        </div>
        {issuing && issuing.state !== 'final' && <ProgressLine progress={issuing} />}
        {(issuing?.state === 'mined' || issuing?.state === 'final') && (
          <p class="buttons">
            <DownloadButton tokenId={token.tokenId} />
          </p>
        )}
      </section>
      <NextOperations token={token} />
      <EndorsementChain token={token} />
    </ShortForms.Provider>
  );
}

/** Every address that the page shows, so that no two look alike. */
function addressesOf(token: TokenView): string[] {
  const { beneficiary, holder, nominee, previousBeneficiary, previousHolder } = token;
  const changes = token.operations.flatMap(({ before, after, sender }) => [
    ...Object.values(before),
    ...Object.values(after),
    sender,
  ]);
  const all = [beneficiary, holder, nominee, previousBeneficiary, previousHolder, ...changes];
  return all.filter((address): address is string => typeof address === 'string');
}

const STATES: readonly { state: TokenView['state']; arrow: string; words: string }[] = [
  { state: 'not minted', arrow: '', words: '' },
  { state: 'in escrow', arrow: '→', words: 'mint' },
  { state: 'returned to issuer', arrow: '⇄', words: 'return, restore' },
  { state: 'shredded', arrow: '→', words: 'shred' },
];

/** The states of a token, with the one that it is in. */
function StateDiagram({ state }: { state: TokenView['state'] }) {
  return (
    <ol class="diagram" aria-label="States of a token">
      {STATES.map((step) => (
        <li key={step.state}>
          {step.arrow !== '' && (
            <span class="arrow">
              <span aria-hidden="true">{step.arrow}</span>
              <span>{step.words}</span>
            </span>
          )}
          <span class="box" aria-current={step.state === state ? 'true' : undefined}>
            {step.state}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The operations that are possible next, each with the account that may send it. */
function NextOperations({ token: { beneficiary, holder, next } }: { token: TokenView }) {
  const rolesOf = (address: string): string => {
    const roles = Object.entries({ beneficiary, holder }).flatMap(([role, one]) =>
      one === address ? role : [],
    );
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
                    <Party address={part.address} isPlain />
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
