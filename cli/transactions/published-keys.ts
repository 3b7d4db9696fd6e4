import { HDNodeWallet, Mnemonic } from 'ethers';
import type { Network } from '../../service/chain/networks';
import { ConfigurationError } from '../../service/base/errors';

/**
 * The mnemonic of every Hardhat node. Its keys are public; bots take whatever they hold on a public chain
 * within seconds.
 */
const PUBLISHED_MNEMONIC = 'test test test test test test test test test test test junk';
const PUBLISHED_ACCOUNTS = 20;
const ACCOUNTS_PATH = "m/44'/60'/0'/0";

/**
 * Rejects wallets whose key is public.
 *
 * @throws ConfigurationError WALLET_KEY_PUBLISHED if it is one of Hardhat's development accounts and the
 *   network is not local.
 */
export function refusePublishedKey({ name, local }: Network, address: string): void {
  if (local || !isPublished(address)) return;
  const message = `WALLET_PRIVATE_KEY is one of Hardhat's published development keys: not used on ${name}.`;
  throw new ConfigurationError('WALLET_KEY_PUBLISHED', message, {
    remedy: 'Anybody could mint in that registry and take its funds. Use a wallet of your own.',
  });
}

function isPublished(address: string): boolean {
  const accounts = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PUBLISHED_MNEMONIC), ACCOUNTS_PATH);
  return Array.from({ length: PUBLISHED_ACCOUNTS }, (_, n) => accounts.deriveChild(n).address).includes(
    address,
  );
}
