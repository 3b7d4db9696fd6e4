import { getAddress, isAddress } from 'ethers/address';
import { hexlify, toUtf8Bytes } from 'ethers/utils';
import { loginMessage } from '../../client/login-message';
import type { WalletPlace } from '../../service/access/wallet-login';
import type { Api } from '../requests/api';
import { RequestFailure } from '../requests/request';

/** A wallet of the browser (EIP-1193). */
export interface WalletProvider {
  request: (asked: { method: string; params: unknown[] }) => Promise<unknown>;
}

const OTHER_NETWORK = 'The wallet does not reach its network. Choose another one there, and try again.';
/** Codes of EIP-1193 and of wallets. */
const REFUSALS: Readonly<Record<number, string>> = {
  4001: 'You rejected it in the wallet. Try again, and approve it there.',
  4100: 'The wallet is locked, or refuses this page. Unlock it, connect it to this page, and try again.',
  4901: OTHER_NETWORK,
  4902: OTHER_NETWORK,
  [-32002]: 'The wallet asks you something already. Open it, answer there, and try again.',
};

/**
 * Logs in with a wallet, whose user is asked, and resolves with the key.
 *
 * @param place of the service.
 * @param page the address of the page, for which wallets sign.
 * @throws RequestFailure WALLET_REFUSED, or that of the service.
 */
export async function keyOfWallet(
  provider: WalletProvider,
  { domain, chainIds }: WalletPlace,
  page: { host: string; origin: string },
  api: Pick<Api, 'makeNonce' | 'logInWallet'>,
): Promise<string> {
  if (page.host !== domain)
    throw refused(`Wallets log in at ${domain}, and this is ${page.host}. Open the console there.`);
  if (chainIds.length === 0) throw refused('No registry is followed now. Load the page again later.');
  const ask = async (method: string, ...params: unknown[]): Promise<unknown> => {
    try {
      return await provider.request({ method, params });
    } catch (thrown) {
      throw refusalOf(thrown);
    }
  };
  const accounts = await ask('eth_requestAccounts');
  const account: unknown = Array.isArray(accounts) ? accounts[0] : undefined;
  if (!isAddress(account))
    throw refused('The wallet gave no account. Unlock it, choose one for this page, and try again.');
  const chainId = Number(await ask('eth_chainId'));
  if (!chainIds.includes(chainId)) {
    const others = chainIds.join(' or ');
    throw refused(
      `The wallet is on chain ${chainId}, which has no registry here. Switch it to ${others}, and try again.`,
    );
  }
  const address = getAddress(account);
  const { nonce } = await api.makeNonce();
  const issuedAt = new Date().toISOString();
  const message = loginMessage({ domain, uri: page.origin, address, chainId, nonce, issuedAt });
  const signature = await ask('personal_sign', hexlify(toUtf8Bytes(message)), address);
  return (await api.logInWallet({ message, signature: String(signature) })).key;
}

/** Wallets throw errors with a code, other objects, and texts. */
function refusalOf(thrown: unknown): RequestFailure {
  const { code, message = thrown } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  const reason = typeof message === 'string' ? message.replace(/\.$/, '') : 'it gave no reason';
  return refused(REFUSALS[Number(code)] ?? `The wallet failed: ${reason}. Unlock it, and try again.`);
}

function refused(message: string): RequestFailure {
  return new RequestFailure(0, 'WALLET_REFUSED', message);
}
