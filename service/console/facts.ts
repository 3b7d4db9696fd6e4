import { checksummed } from '../base/checksums';
import { readPackage } from '../base/project-root';
import { BILL_OF_LADING_CONTEXT, readContextFile } from '../base/published-files';
import type { Chain } from '../chain/chain';
import type { Config } from '../config/config';
import type { Facts } from './views';

/** A local node has 20 accounts by default. */
const MOST_ACCOUNTS = 100;

/** The facts that do not change while the service runs. A local node is asked for its accounts. */
export async function factsOf(
  config: Pick<Config, 'network' | 'mintConfirmations'>,
  canIssue: boolean,
  client: Pick<Chain, 'send'>,
): Promise<Facts> {
  const { name, local: isLocal } = config.network;
  return {
    network: { name, isLocal },
    confirmations: config.mintConfirmations,
    canIssue,
    accounts: isLocal ? await accountsOf(client) : [],
    version: readPackage().version,
    terms: termsOf(),
  };
}

/** Empty if the node does not answer: the form works without them. */
async function accountsOf(client: Pick<Chain, 'send'>): Promise<string[]> {
  const accounts: unknown = await client.send('eth_accounts', []).catch(() => undefined);
  if (!Array.isArray(accounts)) return [];
  return accounts.slice(0, MOST_ACCOUNTS).flatMap((one) => checksummed(String(one)) ?? []);
}

/** The terms of the subject, in the order of the context. Those of packages are inside of `packages`. */
function termsOf(): string[] {
  const { '@context': context } = JSON.parse(readContextFile(BILL_OF_LADING_CONTEXT).toString('utf8')) as {
    '@context': { BillOfLading: { '@context': Record<string, unknown> } };
  };
  return Object.keys(context.BillOfLading['@context']).filter((term) => !term.startsWith('@'));
}
