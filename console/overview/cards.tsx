import type { ComponentChildren } from 'preact';
import type { Overview, RegistryView } from '../../service/console/views';
import { hrefOf } from '../frame/route';
import { FactsList, Hex, ShownText, StateMark, When, type FactsRow, type Tone } from '../parts/values';
import { capitalised, countOf, durationOf, shortAmount } from '../text/words';

const TONES: Record<RegistryView['state'], Tone> = {
  starting: 'wait',
  following: 'good',
  standby: 'plain',
  failing: 'bad',
  stopped: 'bad',
};

/** The feed of a registry. */
export function RegistryCard({ registry }: { registry: RegistryView }) {
  const { network, chainId, state, since, headBlock, finalBlock, nextBlock, lagBlocks } = registry;
  const { reason, catchUp } = registry;
  const isBehind = state === 'following' && catchUp !== undefined;
  return (
    <article class="card registry" aria-label={`Registry on ${network}`}>
      <header>
        <h2>Registry</h2>
        {isBehind ? (
          <StateMark tone="wait" word={catchUp.isEndless ? 'falling behind' : 'catching up'} />
        ) : (
          <StateMark tone={TONES[state]} word={state} />
        )}
      </header>
      <Figure value={lagBlocks} noun="block" after="behind the head" />
      {reason !== undefined && (
        <p>
          <ShownText text={reason} />
        </p>
      )}
      <FactsList
        rows={[
          ['Network', network],
          ['Chain', chainId],
          ['Address', <Hex value={registry.registry} what="address of the registry" />],
          ['Newest block', <Count value={headBlock} />],
          ['Final block', <Count value={finalBlock} />],
          ['Read up to', <Count value={nextBlock && nextBlock - 1} />],
          ['Read', catchUp && `${speedOf(catchUp.blocksPerSecond)} now`],
          ['The chain makes', catchUp && speedOf(catchUp.chainBlocksPerSecond)],
          ['Time left', catchUp && timeLeft(catchUp)],
          ['Events waiting', <Count value={registry.waiting} />],
          ['Dead letters', <Count value={registry.deadLetters} />],
          [`${capitalised(state)} since`, <When at={since} />],
        ]}
      />
    </article>
  );
}

function speedOf(blocksPerSecond: number): string {
  return `${blocksPerSecond.toLocaleString('en')} blocks a second`;
}

function timeLeft({ secondsLeft, isEndless }: NonNullable<RegistryView['catchUp']>): string {
  if (isEndless) return 'endless at this rate';
  return secondsLeft === undefined ? 'not known now' : durationOf(secondsLeft);
}

function Count({ value }: { value: number | undefined }) {
  return value === undefined ? (
    <span class="dim">not known now</span>
  ) : (
    <span>{value.toLocaleString('en')}</span>
  );
}

/** Deliveries of all registries, and subscriptions by state. */
export function SubscriptionCards({ overview: { registries, subscriptions } }: { overview: Overview }) {
  const dead = sumOf(registries, 'deadLetters');
  const unknown = registries.filter(({ waiting }) => waiting === undefined).length;
  return (
    <>
      <Card
        title="Deliveries"
        rows={[
          [
            'Dead letters',
            <a href={hrefOf('deliveries', { state: 'dead' })}>
              {dead?.toLocaleString('en') ?? 'not known now'}
            </a>,
          ],
          ['Not known now', unknown > 0 && countOf(unknown, 'registry', 'registries')],
        ]}
      >
        <Figure
          value={sumOf(registries, 'waiting')}
          noun="event"
          after="waiting"
          href={hrefOf('deliveries', { state: 'waiting' })}
        />
      </Card>
      <Card
        title="Subscriptions"
        rows={[
          ['Paused', subscriptions.paused],
          ['Gone (410)', subscriptions.gone],
        ]}
      >
        <Figure
          value={subscriptions.active}
          noun="subscription"
          after="active"
          href={hrefOf('subscriptions')}
        />
      </Card>
    </>
  );
}

/** The sum over the registries whose figure is known. Undefined if none is. */
function sumOf(registries: readonly RegistryView[], member: 'waiting' | 'deadLetters'): number | undefined {
  const known = registries.flatMap((registry) => registry[member] ?? []);
  if (known.length === 0 && registries.length > 0) return undefined;
  return known.reduce((sum, value) => sum + value, 0);
}

/** The mint queue, signing and the wallet. */
export function IssuingCards({ issuing }: Pick<Overview, 'issuing'>) {
  if (!issuing)
    return (
      <article class="card" aria-label="Issuing">
        <h2>Issuing</h2>
        <p class="dim">This service issues no documents now.</p>
      </article>
    );
  const { mints, signing, wallet } = issuing;
  const oldest = mints?.oldestSeconds;
  return (
    <>
      <Card
        title="Mints"
        rows={[
          ['Sent, not mined', mints?.inFlight.toLocaleString('en') ?? '–'],
          ['Mined, not final', mints?.mined.toLocaleString('en') ?? '–'],
          ['Oldest', mints === undefined ? '–' : oldest === undefined ? 'none' : durationOf(oldest)],
          ['Not signed yet', signing.waiting.toLocaleString('en')],
          ['Signing now', `${signing.busy} of ${countOf(signing.threads, 'thread')}`],
        ]}
      >
        <Figure value={mints?.waiting} noun="mint" after="waiting" />
      </Card>
      <Card
        title="Wallet"
        rows={[
          [
            'Balance',
            wallet === undefined ? (
              'not known now'
            ) : (
              <span title={wallet.balance}>
                {shortAmount(wallet.balance)} {wallet.currency}
              </span>
            ),
          ],
          [
            'Address',
            wallet === undefined ? '–' : <Hex value={wallet.address} what="address of the wallet" />,
          ],
        ]}
      >
        {wallet && wallet.mintsAffordable === undefined ? (
          <p class="figure">Gas is free on this network.</p>
        ) : (
          <Figure
            value={wallet?.mintsAffordable}
            noun="mint"
            after={wallet?.isGasEstimated === false ? 'affordable at the documented gas' : 'affordable now'}
          />
        )}
      </Card>
    </>
  );
}

interface CardProps {
  title: string;
  rows: readonly FactsRow[];
  children: ComponentChildren;
}

function Card({ title, rows, children }: CardProps) {
  return (
    <article class="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
      <FactsList rows={rows} />
    </article>
  );
}

interface FigureProps {
  /** Undefined: not known now. */
  value: number | undefined;
  noun: string;
  after: string;
  href?: string;
}

/** The number that a card is about. Millions are shortened: their last digits tell nothing, and move. */
function Figure({ value, noun, after, href }: FigureProps) {
  const content =
    value === undefined ? (
      <>
        <span class="value">–</span> {noun}s: not known now
      </>
    ) : (
      <>
        <span class="value">
          {value.toLocaleString('en', value < 1_000_000 ? {} : { notation: 'compact' })}
        </span>{' '}
        {value === 1 ? noun : `${noun}s`} {after}
      </>
    );
  return <p class="figure">{href === undefined ? content : <a href={href}>{content}</a>}</p>;
}
