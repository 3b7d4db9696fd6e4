import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OPERATIONAL_TYPES } from '../client/events';
import { createClient } from '../client/create-client';
import { ServiceError } from '../service/base/errors';
import { freePort } from './place';
import type { Devnet } from './start-devnet';

/** The operational events of the faults, without the prefix of all. */
const TOLD = ['operations.subscription_gone', 'operations.dead_letter', 'operations.wallet_low'] as const;
/** The wallet's balance is read every ten seconds. */
const TOLD_WITHIN_MS = 60_000;
/** Attempts that are over after two seconds. */
const GIVES_UP_SOON = { initialDelayMs: 250, maxDelayMs: 250, giveUpAfterMs: 1_000 };

/**
 * Subscribes the receiver to operational events, and makes three faults: a sink that answers 410, a sink that
 * nobody listens at, and a wallet without funds. Waits until the devnet's own receiver was told of each.
 *
 * @param options `isOwn`: whether the receiver is the devnet's own.
 * @returns what ends the first sink.
 */
export async function makeFaults(
  devnet: Devnet,
  { say, isOwn }: { say: (line: string) => void; isOwn: boolean },
): Promise<() => void> {
  const { serviceUrl: url, adminApiKey, receiverUrl, accounts, client } = devnet;
  const service = createClient({ url, key: adminApiKey });
  const subscribe = async (sink: string, types: readonly string[], retry = {}): Promise<void> => {
    const body = { sink, protocol: 'HTTP' as const, types: types as [], config: { retry } };
    const { error } = await service.POST('/subscriptions', { body });
    if (error) throw new ServiceError('DEVNET_FAILED', error.error.message);
  };
  const gone = createServer((_request, response) => void response.writeHead(410).end());
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  await subscribe(receiverUrl, OPERATIONAL_TYPES);
  say('the receiver is subscribed to operational events');
  const { port } = gone.address() as AddressInfo;
  await subscribe(`http://127.0.0.1:${port}`, ['com.service.etr.holder_transfer']);
  await subscribe(`http://127.0.0.1:${await freePort(0)}`, ['com.service.etr.minted'], GIVES_UP_SOON);
  await devnet.issue();
  say('a document is issued, for one sink that answers 410 and one that does not answer');
  await client.send('hardhat_setBalance', [accounts[0], '0x0']);
  say('the wallet is empty');
  if (isOwn) for (const type of TOLD) await devnet.webhooks.next({ type, withinMs: TOLD_WITHIN_MS });
  return () => void gone.close();
}
