import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { TokenView } from '../../service/console/views';
import { accountNames } from '../../cli/terminal/printable';
import { useConsole } from '../frame/console-context';
import { Hex } from '../parts/hex';
import { FactsList } from '../parts/facts-list';
import { Party } from '../parts/party';
import { ShownText } from '../parts/shown-text';
import { DownloadButton } from '../issuing/download-button';
import { ProgressLine } from '../issuing/progress-line';
import { explorerLink } from './explorer-link';
import { NextOperations } from './next-operations';
import { StateDiagram } from './state-diagram';
import { Timeline } from './timeline';

/** A token as it is now, and how it came there. */
export function TokenDetails({ token }: { token: TokenView }) {
  const { facts, announce } = useConsole();
  useEffect(() => announce(`Token ${token.state}.`), [token.tokenId]);
  const names = accountNames(addressesOf(token));
  const party = (address: string | null): ComponentChildren =>
    address === null ? undefined : <Party address={address} names={names} />;
  const { registry, titleEscrow, explorerUrl, issuing } = token;
  return (
    <>
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
              [
                'Bill of Lading',
                issuing?.blNumber == null ? undefined : <ShownText text={issuing.blNumber} />,
              ],
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
                titleEscrow === null ? undefined : (
                  <Hex value={titleEscrow} what="address of the title escrow" />
                ),
              ],
              ['Read at block', token.block.toLocaleString('en')],
            ]}
          />
        </div>
        {issuing && issuing.state !== 'final' && (
          <ProgressLine progress={issuing} confirmations={facts.confirmations} />
        )}
        {(issuing?.state === 'mined' || issuing?.state === 'final') && (
          <p class="buttons">
            <DownloadButton tokenId={token.tokenId} />
          </p>
        )}
      </section>
      <NextOperations next={token.next} token={token} names={names} />
      <Timeline token={token} names={names} />
    </>
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
