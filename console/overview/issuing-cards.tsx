import { useConsole } from '../frame/console-context';
import { FactsList } from '../parts/facts-list';
import { Hex } from '../parts/hex';
import { shortAmount } from '../text/amount';
import { countOf, durationOf } from '../text/relative-time';
import { Figure } from './figure';

/** The mint queue, signing and the wallet. */
export function IssuingCards() {
  const { overview } = useConsole();
  const issuing = overview?.issuing;
  if (!issuing)
    return (
      <article class="card" aria-label="Issuing">
        <h2>Issuing</h2>
        <p class="dim">This service issues no documents now.</p>
      </article>
    );
  const { mints, signing, wallet } = issuing;
  return (
    <>
      <article class="card" aria-label="Mints">
        <h2>Mints</h2>
        <Figure value={mints?.waiting ?? null} noun="mint" after="waiting" />
        <FactsList
          rows={[
            ['Sent, not mined', mints?.inFlight.toLocaleString('en') ?? '–'],
            ['Mined, not final', mints?.mined.toLocaleString('en') ?? '–'],
            ['Oldest', mints === null ? '–' : oldestOf(mints.oldestSeconds)],
            ['Not signed yet', signing.waiting.toLocaleString('en')],
            ['Signing now', `${signing.busy} of ${countOf(signing.threads, 'thread')}`],
          ]}
        />
      </article>
      <article class="card" aria-label="Wallet">
        <h2>Wallet</h2>
        {wallet && wallet.mintsAffordable === null ? (
          <p class="figure">Gas is free on this network.</p>
        ) : (
          <Figure value={wallet?.mintsAffordable ?? null} noun="mint" after="affordable now" />
        )}
        <FactsList
          rows={[
            [
              'Balance',
              wallet === null ? (
                'not known now'
              ) : (
                <span title={wallet.balance}>
                  {shortAmount(wallet.balance)} {wallet.currency}
                </span>
              ),
            ],
            ['Address', wallet === null ? '–' : <Hex value={wallet.address} what="address of the wallet" />],
          ]}
        />
      </article>
    </>
  );
}

function oldestOf(seconds: number | null): string {
  return seconds === null ? 'none' : durationOf(seconds);
}
