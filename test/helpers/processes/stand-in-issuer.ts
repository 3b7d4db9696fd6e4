import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { type JsonRpcProvider, Wallet, toQuantity } from 'ethers';
import { type HardhatNode, nodeClient } from '../../../devnet/hardhat-node';
import { tenantFilesOf, tenantOf } from '../../../service/config/tenant';
import { publishedContractsOf } from '../../../deploy/published-contracts';
import type { Network } from '../../../service/chain/networks';
import { readSettings } from '../../../service/config/config';
import minimal from '../../fixtures/bill-of-lading-minimal.json';
import { create, type CreateAnswer } from './create-call';
import { hardhat, tdoc } from './command-output';
import { forwardTo, startHttpsFront } from './https-front';
import { track } from '../resources';
import { installContracts } from '../../../devnet/local-chain';
import { startRecordingReceiver, type RecordingReceiver } from '../receiver/recording-receiver';
import { startServiceProcess, type ServiceProcess } from './service-process';
import { temporaryFolder } from '../temporary-folder';

/** The host where verifiers look for the issuer's DID document. */
export const DOMAIN = 'carrier.example';

/**
 * A local stand-in for a public network, and an issuer on it that has run the setup commands.
 */
export interface StandIn {
  folder: string;
  chain: JsonRpcProvider;
  wallet: Wallet;
  /** Settings of commands and service: an env file, and how to find the hosts. */
  settings: Record<string, string>;
  registry: string;
  service: ServiceProcess;
  receiver: RecordingReceiver;
  /** Calls POST /create with the wallet as owner and holder. */
  issue(): Promise<CreateAnswer>;
  stop(): Promise<void>;
}

/** Options of a stand-in. */
export interface StandInOptions {
  network: Network;
  /** A node with the chain id of the network. It is stopped with the stand-in. */
  node: HardhatNode;
  /** The listeners for the hosts of the network, over HTTPS under their names. */
  hosts: Record<string, RequestListener>;
  /** Lines of the env file beside DOMAIN, NET and WALLET_PRIVATE_KEY. */
  env: Record<string, string>;
  /** The setup commands after `npx`. Defaults to the usual ones. */
  commands?: string[][];
  /** Balance of the wallet, in wei. */
  balance: bigint;
  /** Prepares the node before the commands run. */
  prepare?(chain: JsonRpcProvider): Promise<void>;
}

/**
 * Puts the published contracts on the node, runs the setup commands and starts the compiled service, as a
 * user does.
 */
export async function createStandIn(options: StandInOptions): Promise<StandIn> {
  const { network, node, balance } = options;
  const folder = temporaryFolder();
  const untrack = track(`node on ${node.url}`);
  const chain = nodeClient(node.url, network.chainId);
  const wallet = new Wallet(Wallet.createRandom().privateKey);
  await installContracts(chain, publishedContractsOf(network.chainId));
  await chain.send('hardhat_setBalance', [wallet.address, toQuantity(balance)]);
  await options.prepare?.(chain);

  const hosts = { ...options.hosts, [DOMAIN]: forwardTo(() => service.url) };
  const https = await startHttpsFront(folder.path, hosts);
  const envFile = join(folder.path, 'carrier.env');
  const env = {
    DOMAIN,
    NET: String(network.chainId),
    WALLET_PRIVATE_KEY: wallet.privateKey,
    ...options.env,
  };
  writeFileSync(
    envFile,
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const settings = { ENV_FILE: envFile, ...https.environment };
  const usual = [
    ['hardhat', 'deploy', '--network', network.name],
    ['tdoc', 'setup'],
  ];
  for (const [program, ...args] of options.commands ?? usual)
    await (program === 'tdoc' ? tdoc : hardhat)(args, settings);
  const receiver = await startRecordingReceiver(tenantFilesOf(tenantOf(envFile)).webhookPublicKey);
  const service: ServiceProcess = await startServiceProcess({
    ...settings,
    WEBHOOK_URL: receiver.url,
  });
  const { url } = service;
  return {
    folder: folder.path,
    chain,
    wallet,
    settings,
    registry: readSettings({ ENV_FILE: envFile }).settings.TOKEN_REGISTRY_ADDRESS ?? '',
    service,
    receiver,
    issue: () => create(url, { ...minimal, owner: wallet.address, holder: wallet.address }),
    async stop() {
      await service.end('SIGTERM');
      await receiver.close();
      await https.close();
      chain.destroy();
      await node.stop();
      untrack();
      folder.remove();
    },
  };
}
