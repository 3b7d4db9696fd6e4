import { SpanKind } from '@opentelemetry/api';
import { pause } from '../base/time';
import { beginSpan, endSpan } from '../base/trace';
import { broadcast } from '../chain/transactions';
import { handleRejections, type NotAcknowledged } from './handle-rejections';
import { versionsOf } from './mint';
import type { QueuedMint, QueuedMints } from './queued-mints';

const IDLE_MS = 60_000;
/** Before a transaction that was not acknowledged is sent again; doubled each time. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/**
 * How many transactions may be on their way to the node before it acknowledges the first. Most nodes accept
 * transactions in any order; they work on a few requests at a time. A local node that mines at once refuses
 * one that arrives too early. There, and for a while after any node refuses one for that reason, transactions
 * are sent one after the other.
 */
const WIDEST = 16;
const RPC_METHOD = 'eth_sendRawTransaction';
const RPC_CALL = { kind: SpanKind.CLIENT, attributes: { 'rpc.system': 'jsonrpc', 'rpc.method': RPC_METHOD } };

/**
 * Sends ready transactions in the order of their nonces, several at a time if the node allows it. After one
 * that is not acknowledged, sending stops until all in flight are answered; then the rejections are handled.
 *
 * @returns `turn`, which sends what may be sent now and returns milliseconds until the next turn; `finish`,
 *   which resolves when all in flight are answered.
 */
export function createMintSending(mints: QueuedMints) {
  const { sleeps, stopping } = mints;
  const { client, time } = mints.options;
  const underWay = new Set<Promise<void>>();
  const rejected: NotAcknowledged[] = [];
  let disturbed = 0;

  async function turn(): Promise<number> {
    if (rejected.length > 0 && underWay.size === 0) {
      const pauses = await handleRejections(mints, rejected.splice(0));
      if (pauses) await pause(time, Math.min(FIRST_PAUSE_MS * 2 ** disturbed++, LONGEST_PAUSE_MS), stopping);
      return 0;
    }
    const [next] = mints.held('ready');
    const isNarrow = mints.minesAtOnce || time.elapsed() < mints.narrowUntil;
    if (next === undefined || rejected.length > 0 || underWay.size >= (isNarrow ? 1 : WIDEST)) return IDLE_MS;
    const sending = send(next).finally(() => {
      underWay.delete(sending);
      sleeps.sending.wake();
    });
    underWay.add(sending);
    sleeps.preparing.wake();
    return 0;
  }

  async function send(queued: QueuedMint): Promise<void> {
    const sent = versionsOf(queued.mint).at(-1);
    mints.observe(queued, { saw: 'sent', at: time.elapsed() });
    if (sent === undefined) return;
    const [span] = beginSpan(RPC_METHOD, queued.mint.issuance.trace, RPC_CALL);
    const outcome = await broadcast(client, sent.raw);
    endSpan(span, outcome.state !== 'taken');
    if (outcome.state !== 'taken') {
      rejected.push({ queued, sent, outcome });
      return;
    }
    disturbed = 0;
    mints.observe(queued, { saw: 'taken', hash: sent.hash });
    if (queued.mint.state.name !== 'pending') return;
    queued.logger.debug({ nonce: sent.nonce, txHash: sent.hash }, 'mint submitted');
    if (mints.minesAtOnce) sleeps.following.wake();
  }

  return { turn, finish: () => Promise.all(underWay) };
}
