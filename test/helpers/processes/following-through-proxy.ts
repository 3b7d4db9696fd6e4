import { whileFollowing, type FollowedRegistry, type Following } from './followed-registry';
import { startRpcProxy, type Answerer, type RpcProxy } from '../chain/rpc-proxy';
import type { LocalSetup } from '../chain/local-setup';

/**
 * Follows the registry like `whileFollowing`, through a proxy in front of the node that answers with
 * `answerer` from the beginning.
 */
export async function whileFollowingThroughProxy(
  local: LocalSetup,
  { answerer, ...following }: Following & { answerer?: Answerer },
  act: (proxy: RpcProxy, followed: FollowedRegistry) => Promise<void>,
): Promise<void> {
  const proxy = await startRpcProxy(local.node.url, answerer);
  try {
    const settings = { ...following.settings, RPC_URL: proxy.url };
    await whileFollowing(local, { ...following, settings }, (followed) => act(proxy, followed));
  } finally {
    await proxy.close();
  }
}
