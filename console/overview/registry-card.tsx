import type { RegistryView } from '../../service/console/views';
import { Hex } from '../parts/hex';
import { ShownText } from '../parts/shown-text';
import { StateMark, type Tone } from '../parts/state-mark';
import { FactsList } from '../parts/facts-list';
import { When } from '../parts/when';
import { Figure } from './figure';

const TONES: Record<RegistryView['state'], Tone> = {
  starting: 'wait',
  following: 'good',
  standby: 'plain',
  failing: 'bad',
  stopped: 'bad',
};

/** The feed of a registry. */
export function RegistryCard({ registry }: { registry: RegistryView }) {
  const { network, chainId, state, since, headBlock, readUpTo, lagBlocks, reason } = registry;
  return (
    <article class="card registry" aria-label={`Registry on ${network}`}>
      <header>
        <h2>Registry</h2>
        <StateMark tone={TONES[state]} word={state} />
      </header>
      <Figure value={lagBlocks} noun="block" after="behind the head" />
      {reason !== null && (
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
          ['Read up to', <Count value={readUpTo} />],
          ['Events waiting', <Count value={registry.waiting} />],
          ['Dead letters', <Count value={registry.deadLetters} />],
          [`${state.charAt(0).toUpperCase()}${state.slice(1)} since`, <When at={since} />],
        ]}
      />
    </article>
  );
}

function Count({ value }: { value: number | null }) {
  return value === null ? <span class="dim">not known now</span> : <span>{value.toLocaleString('en')}</span>;
}
