import { costLines, requireFunds } from '../../cli/transactions';
import { feesOf } from '../sending';
import { ConfigurationError } from '../../service/base/errors';
import type { DeployContext } from './context';

/** A transaction whose gas is estimated. `to` is undefined if it creates a contract. */
export interface PlannedTransaction {
  readonly to: string | undefined;
  readonly data: string;
}

/** The node's gas estimate for a transaction of the deploying account. */
export async function estimateGas(
  { request, account }: DeployContext,
  { to, data }: PlannedTransaction,
): Promise<bigint> {
  return BigInt((await request('eth_estimateGas', [{ from: account, ...(to && { to }), data }])) as string);
}

/**
 * Checks that the account can pay before anything is sent. On public networks it first prints wallet, balance
 * and maximum cost.
 *
 * @param estimate the gas of the transactions that follow; not called on local chains.
 * @param remark printed with the estimate.
 * @throws ConfigurationError WALLET_NOT_FUNDED.
 */
export async function afford(
  context: DeployContext,
  estimate: () => Promise<bigint>,
  remark?: string,
): Promise<void> {
  const { hre, request, target, account, say } = context;
  const { network } = target;
  const balance = BigInt((await request('eth_getBalance', [account, 'latest'])) as string);
  if (target.isLocal || network === undefined) return requireAnything(context, balance);
  const cost = { account, balance, gas: await estimate(), fees: await feesOf(hre) };
  for (const line of costLines(cost, network)) say(line);
  if (remark !== undefined) say(remark);
  requireFunds(cost, network);
}

/** On a local chain any balance above zero is enough. */
async function requireAnything({ request, target, account }: DeployContext, balance: bigint): Promise<void> {
  if (balance > 0n || BigInt((await request('eth_gasPrice')) as string) === 0n) return;
  const message = `The wallet ${account} has no ${target.network?.currency ?? 'funds'} on ${target.name}.`;
  const remedy = 'Send it enough to pay for the transactions.';
  throw new ConfigurationError('WALLET_NOT_FUNDED', message, { remedy });
}
