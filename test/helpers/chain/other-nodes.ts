import type { SeededRandom } from '../seeded-random';
import type { RpcAnswer, RpcCall } from './rpc-proxy';

/** How nodes in the field answer otherwise than Hardhat's node, in ways that are no lies. */
export interface NodeProgram {
  /**
   * The hashes for which `eth_getLogs` gives no logs and no error: of blocks that it lacks, or all.
   * `refused`: it knows no logs of hashes.
   */
  silentHashes: 'none' | 'unknown' | 'all' | 'refused';
  /** Undefined: its blooms are right. */
  bloom: string | undefined;
  /** The answer for block 0. Undefined: it has it. */
  block0: RpcAnswer | undefined;
}

const BLOOMS = [undefined, '0x', `0x${'00'.repeat(256)}`, `0x${'ff'.repeat(256)}`];
const PRUNED: (RpcAnswer | undefined)[] = [
  undefined,
  { result: null },
  { error: { code: 4444, message: 'pruned history unavailable' } },
  { error: { code: -32000, message: 'missing trie node' } },
  { error: { code: -32000, message: 'the archive is not part of your plan' } },
];
const UNKNOWN_FIELD: RpcAnswer = { error: { code: -32602, message: 'unknown field blockHash' } };

export function drawProgram(random: SeededRandom): NodeProgram {
  return {
    silentHashes: random.pick(['none', 'unknown', 'all', 'refused'] as const),
    bloom: random.pick(BLOOMS),
    block0: random.pick(PRUNED),
  };
}

/** Answers as a node of this program that has what `ask` gives. */
export async function answerAs(
  { silentHashes, bloom, block0 }: NodeProgram,
  { method, params: [first] }: RpcCall,
  ask: () => Promise<RpcAnswer>,
): Promise<RpcAnswer> {
  if (method === 'eth_getBlockByNumber' && first === '0x0' && block0 !== undefined) return block0;
  if (method === 'eth_getLogs' && typeof (first as { blockHash?: string }).blockHash === 'string') {
    if (silentHashes === 'refused') return UNKNOWN_FIELD;
    const answer = silentHashes === 'all' ? { result: [] } : await ask();
    return 'error' in answer && silentHashes === 'unknown' ? { result: [] } : answer;
  }
  const answer = await ask();
  if (!method.startsWith('eth_getBlockBy') || bloom === undefined || 'error' in answer) return answer;
  return { result: answer.result && { ...answer.result, logsBloom: bloom } };
}
