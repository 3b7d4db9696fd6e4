import { ChainError } from '../../service/base/errors';
import type { Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config/config';
import { rpcUrlOf, settingOf, type Settings } from '../../service/config/settings';
import {
  networkOfChain,
  reachRegistry,
  type ReachedRegistry as Reached,
} from '../../service/token/reach-registry';
import { printable } from '../terminal/printable';

/** A registry that was reached with the settings. */
export interface ReachedRegistry extends Reached {
  /** Without the settings that apply only to NET's network, if this is another one. */
  settings: Settings;
}

/**
 * Connects to a registry on any supported chain and closes the connection afterwards. The node is that of
 * RPC_URL for the chain of NET, or for any chain while NET is not set; otherwise the network's own.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN or a missing provider key; the errors of reachRegistry.
 */
export async function withRegistry<T>(
  { chainId, registry }: { chainId: number; registry: string },
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const network = networkOfChain(chainId);
  const settings = settingsFor(network);
  const node = { network, url: rpcUrlOf(network, settings) };
  try {
    return await reachRegistry(node, registry, (reached) => read({ ...reached, settings }));
  } catch (thrown) {
    if (!(thrown instanceof ChainError) || thrown.code !== 'NODE_FAILED') throw thrown;
    throw new ChainError(thrown.code, printable(thrown.message), { retryable: true });
  }
}

function settingsFor(network: Network): Settings {
  const { settings } = readSettings();
  const isOfNet = settings.NET === undefined || settingOf(settings, 'NET').chainId === network.chainId;
  return isOfNet ? settings : { ...settings, RPC_URL: undefined, GAS_STATION_URL: undefined };
}
