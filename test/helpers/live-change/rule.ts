import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { SeededRandom } from '../seeded-random';

/** The number of tokens of each registry. */
export const TOKENS = 50;
/** The types of the recorded events. */
export const TYPES = ['holder_transfer', 'nomination', 'shred'] as const;

/** The selection of events of a subscription, without the code that is tested. */
export interface Rule {
  readonly members: object;
  wants(event: Pick<RegistryEvent, 'type' | 'tokenId'>): boolean;
}

const ALL_TOKENS = Array.from({ length: TOKENS }, (_, token) => BigInt(token));

/** A rule of a random kind: everything, some types, some tokens, all tokens but some. */
export function randomRule(random: SeededRandom, tokens: readonly bigint[] = ALL_TOKENS): Rule {
  const some = new Set(Array.from({ length: Math.ceil(tokens.length / 2) }, () => random.pick(tokens)));
  const ids = [...some].map(String);
  const types = TYPES.filter(() => random.chance(0.6));
  const rules: Rule[] = [
    { members: {}, wants: () => true },
    { members: { filters: [{ tokens: ids }] }, wants: ({ tokenId }) => isIn(some, tokenId) },
    { members: { filters: [{ not: { tokens: ids } }] }, wants: ({ tokenId }) => !isIn(some, tokenId) },
    {
      members: { filters: [{ any: [{ suffix: { type: '.shred' } }, { tokens: ids }] }] },
      wants: ({ type, tokenId }) => type === 'shred' || isIn(some, tokenId),
    },
  ];
  if (types.length > 0)
    rules.push({
      members: { types: types.map((type) => `com.service.etr.${type}`) },
      wants: ({ type }) => types.some((wanted) => wanted === type),
    });
  return random.pick(rules);
}

function isIn(ids: ReadonlySet<bigint>, id: bigint | undefined): boolean {
  return id !== undefined && ids.has(id);
}

/** A time span by a counter that is incremented by each beginning and each end. */
export interface Span {
  from: number;
  to: number;
}

/** A rule from an answered request on. Undefined: the subscription was deleted. */
export interface RuleChange extends Span {
  rule: Rule | undefined;
}

/**
 * Whether an event must, may or must not arrive. A change that was answered before the recording began holds
 * for it; one that was asked for after its end does not; any other may.
 *
 * @param changes of one subscription, in order. Before the first it has no rule.
 */
export function expectationOf(
  changes: readonly RuleChange[],
  event: RegistryEvent,
  recorded: Span,
): 'must' | 'may' | 'must not' {
  let possible = [false];
  for (const { from, to, rule } of changes) {
    if (from > recorded.to) break;
    const wants = rule?.wants(event) ?? false;
    possible = to < recorded.from ? [wants] : [...possible, wants];
  }
  if (possible.every((wants) => wants)) return 'must';
  return possible.some((wants) => wants) ? 'may' : 'must not';
}
