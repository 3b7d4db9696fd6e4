import { hexlify, randomBytes } from 'ethers';
import pMap from 'p-map';
import { systemTime } from '../../service/base/time';
import { cut } from '../../service/base/errors';
import { printableUrl } from '../../service/base/mask-secrets';
import { type Network } from '../../service/chain/networks';
import { classifyRefusal, isNotImplemented, nodeErrorOf } from '../../service/chain/node-errors';
import { existingBlock, headNumberOf, logsOf } from '../../service/chain/read-chain';
import { receiptLogsOf } from '../../service/chain/read-receipts';
import { connectNode, type Chain } from '../../service/chain/chain';
import {
  broadcast,
  highestGasPrice,
  LEAST_FEE_REMEDY,
  namedTip,
  withLeastTip,
  estimateFees,
} from '../../service/chain/transactions';
import { balanceOf, codeAt, runnerOf, transactionCountOf } from '../../service/chain/read-state';
import type { Settings } from '../../service/config/settings';
import { maskedCodeHash, PUBLISHED_CODE } from '../../service/evidence/published-contracts';
import { openWallet } from '../../service/keys/wallet';
import { readFunds } from '../../service/observability/issuing-report';
import { createRegistryFinder, type RegistryOnChain } from '../../service/registry/registry-contracts';
import { createMintSimulation, estimateMint, trialMint } from '../../service/registry/simulate-mint';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { ROLES } from '../registry-admin/roles';
import { amount, readNetworkFees, refusePublishedKey } from '../transactions';
import {
  ANSWER_WITHIN_MS,
  catchUp,
  checkNode,
  found,
  ok,
  reasonOf,
  type CheckedNode,
  type Finding,
  type OpenNode,
  type Statements,
} from './check-node';

/** Fewer mints than this are a warning. */
const FEW_MINTS = 100;

/** Checks the nodes of a chain side by side, then the registries and the wallet through those that answer. */
export async function checkChain(
  checked: readonly CheckedNode[],
  settings: Settings,
  now: number,
): Promise<Finding[]> {
  const nodes = checked.map((node): OpenNode => {
    const { url, network } = node;
    const client = connectNode(url, network, systemTime, 'single', ANSWER_WITHIN_MS);
    const bulkClient = connectNode(url, network, systemTime, 'bulk', ANSWER_WITHIN_MS);
    return { ...node, name: printableUrl(url), client, bulkClient };
  });
  try {
    const ofNodes = await pMap(nodes, (node) => checkNode(node, now));
    const answering = ofNodes.flatMap(({ usable }) => usable ?? []);
    const { findings, agreeing } = await compareNodes(answering);
    return [
      ...ofNodes.flatMap((ofNode) => ofNode.findings),
      ...findings,
      ...(await checkRegistries(nodes, agreeing)),
      ...(await checkWallets(nodes, agreeing, settings)),
    ];
  } finally {
    for (const { client, bulkClient } of nodes) {
      client.close();
      bulkClient.close();
    }
  }
}

/** The service leaves a node out that stays this many blocks behind. */
const MOST_BEHIND = 3;

/**
 * Compares the newest blocks of the nodes of a chain, and the hash of a block that all of them have.
 * `agreeing`: the nodes that are not behind, and of the branch that most of them have.
 */
async function compareNodes(
  nodes: readonly OpenNode[],
): Promise<{ findings: Finding[]; agreeing: readonly OpenNode[] }> {
  if (nodes.length < 2) return { findings: [], agreeing: nodes };
  const odd = new Set<OpenNode>();
  const findings = await found('nodes', async () => {
    const heads = await pMap(nodes, async (node) => ({ node, head: await headNumberOf(node.client) }));
    const lowest = Math.min(...heads.map(({ head }) => head));
    const best = heads.reduce((one, other) => (other.head > one.head ? other : one));
    // A block near the head may still change.
    const block = Math.max(0, lowest - best.node.network.confirmations);
    const hashes = await pMap(nodes, async ({ client }) => (await existingBlock(client, block)).hash);
    const countOf = (hash: string): number => hashes.filter((one) => one === hash).length;
    const [usual] = [...hashes].sort((one, other) => countOf(other) - countOf(one));
    const others = nodes.flatMap(({ name }, index) => (hashes[index] === usual ? name : [])).join(', ');
    const statements: Statements = [];
    for (const [index, { node, head }] of heads.entries()) {
      const behind = best.head - head;
      if (hashes[index] !== usual)
        statements.push({
          status: 'fault',
          statement: `${node.name} has another block ${block} than ${others}`,
          remedy: 'They are not of one chain, or one is on another branch: correct RPC_URL.',
        });
      else if (behind > MOST_BEHIND)
        statements.push({
          status: 'warning',
          statement: `${node.name} is ${behind} blocks behind ${best.node.name}`,
          remedy: 'The service leaves it out while it is behind: wait, or set RPC_URL to another node.',
        });
      else continue;
      odd.add(node);
    }
    if (statements.length > 0) return statements;
    return [ok(`all ${nodes.length} have the same block ${block}, and none is behind`)];
  });
  return { findings, agreeing: nodes.filter((node) => !odd.has(node)) };
}

/** A statement of all nodes about a registry is one finding. A statement of some of them names them. */
async function checkRegistries(
  nodes: readonly OpenNode[],
  answering: readonly OpenNode[],
): Promise<Finding[]> {
  const addresses = [...new Set(nodes.flatMap(({ registries }) => registries))];
  const findings = await pMap(addresses, async (address) => {
    const subject = `registry ${address}`;
    const asked = answering.filter(({ registries }) => registries.includes(address));
    if (asked.length === 0) return [unknown(subject)];
    const all = await pMap(asked, async ({ name, ...node }) =>
      (await found(subject, () => checkRegistry(address, node))).map((finding) => ({ finding, name })),
    );
    const namesOf = ({ statement }: Finding): string[] =>
      all.flat().flatMap(({ finding, name }) => (finding.statement === statement ? name : []));
    return all.flat().flatMap(({ finding, name }) => {
      const names = namesOf(finding);
      if (names[0] !== name) return [];
      return names.length === asked.length
        ? finding
        : { ...finding, subject: `${subject} at ${names.join(', ')}` };
    });
  });
  return findings.flat();
}

/** The wallet is checked through the first node that answers. */
async function checkWallets(
  nodes: readonly OpenNode[],
  answering: readonly OpenNode[],
  settings: Settings,
): Promise<Finding[]> {
  const issuing = nodes.find((node) => node.issuing)?.issuing;
  if (issuing === undefined) return [];
  const subject = `wallet ${issuing.wallet.address}`;
  const node = answering.find((one) => one.issuing);
  if (node === undefined) return [unknown(subject)];
  const { client, network } = node;
  const { address } = issuing.wallet;
  return [
    ...(await found(subject, async () => {
      refusePublishedKey(network, address);
      return [await checkFunds(client, issuing, network, settings)];
    })),
    ...(await found(subject, () => checkFees(client, network, settings))),
    ...(await found(subject, async () => [await checkNonces(client, address)])),
    ...(await found(subject, async () => [await checkMinter(client, issuing)])),
  ];
}

const unknown = (subject: string): Finding => ({
  status: 'unknown',
  subject,
  statement: 'not checked: no node of its chain can be asked',
});

async function checkRegistry(address: string, node: Omit<OpenNode, 'name'>): Promise<Statements> {
  const { client, network, issuing, pace, startBlocks } = node;
  const registry = await createRegistryFinder(client, address)();
  const { genesisBlock, contracts, origin } = registry;
  const head = await headNumberOf(client);
  const isPaused = await TradeTrustTokenStandard__factory.connect(address, runnerOf(client)).paused();
  const code = await codeAt(client, contracts.titleEscrowImplementation);
  const build = maskedCodeHash(code) === PUBLISHED_CODE.titleEscrow ? 'the published' : 'another';
  const flags =
    issuing?.registryAddress === address ? '' : ` --registry ${address} --network ${network.name}`;
  return [
    ok(`created in block ${genesisBlock}, with the title escrow factory ${contracts.titleEscrowFactory}`),
    ok(`its title escrows are those of version 5, of ${build} build`),
    isPaused
      ? {
          status: 'fault',
          statement: 'is paused: nobody can mint, transfer, return, restore or burn',
          remedy: `Its admin runs \`npx tdoc unpause${flags}\`.`,
        }
      : ok('is not paused'),
    ...(origin?.number === 0 ? [] : [withoutBlock0(registry)]),
    ...(pace ? [catchUp(pace, { fromBlock: startBlocks.get(address) ?? genesisBlock, head })] : []),
    ...(await checkHistory(address, node, registry)),
  ];
}

function withoutBlock0({ origin, genesisBlock }: RegistryOnChain): Statements[number] {
  if (origin !== undefined)
    return {
      status: 'warning',
      statement: `the node does not have block 0: block ${genesisBlock} stands for the chain`,
      remedy: 'The service works. `npx hardhat deploy` on a public network needs another node (RPC_URL).',
    };
  return {
    status: 'warning',
    statement: `the node has neither block 0 nor the registry's first block ${genesisBlock}`,
    remedy:
      'A service that has read nothing yet needs START_BLOCK at a block that the node has, ' +
      'or another node (RPC_URL): otherwise it refuses to issue (LOGS_PRUNED).',
  };
}

/** A registry's creation always has logs, so a node without them has forgotten that block. */
async function checkHistory(
  address: string,
  { client, bulkClient }: Omit<OpenNode, 'name'>,
  { genesisBlock }: RegistryOnChain,
): Promise<Statements> {
  const range = { fromBlock: genesisBlock, toBlock: genesisBlock };
  const logs = await logsOf(bulkClient, { address: [address], ...range }).catch(reasonOf);
  if (typeof logs === 'string') {
    const remedy =
      'Events are read by receipts. Histories and evidence of tokens need another node (RPC_URL).';
    return [{ status: 'warning', statement: `its first logs cannot be read: ${logs}`, remedy }];
  }
  const [log] = logs;
  if (log === undefined)
    return [
      {
        status: 'warning',
        statement: `the node has no logs of its first block ${genesisBlock}`,
        remedy: 'A service that has not read these blocks yet needs an archive node (RPC_URL).',
      },
    ];
  const byHash = await logsOf(bulkClient, { address: [address], blockHash: log.blockHash });
  if (byHash.length === 0)
    return [
      {
        status: 'warning',
        statement: 'the node has the logs of its first block, but gives none by the hash of the block',
        remedy:
          'Blocks with events take three more calls each: use another node (RPC_URL), or a newer version.',
      },
    ];
  if ((await receiptLogsOf(client, [log])).size > 0)
    return [ok('the logs and receipts of its first block can be read')];
  return [
    {
      status: 'warning',
      statement: 'the node has the logs of its first block, but no receipts',
      remedy: 'Old blocks with events take two more `eth_getLogs` each.',
    },
  ];
}

async function checkMinter(
  client: Chain,
  { wallet: { address }, registryAddress }: NonNullable<CheckedNode['issuing']>,
): Promise<Statements[number]> {
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, runnerOf(client));
  const isMinter = await registry.hasRole(ROLES.get('minter') ?? '', address).catch((cause: unknown) => {
    if (isNotImplemented(cause)) return undefined;
    throw cause;
  });
  if (isMinter === undefined)
    return {
      status: 'unknown',
      statement: `whether it may mint is not known: ${registryAddress} is not a registry`,
    };
  if (!isMinter)
    return {
      status: 'fault',
      statement: `has no minter role in registry ${registryAddress}`,
      remedy: `Its admin runs \`npx tdoc role grant --role minter --account ${address}\`.`,
    };
  if (await registry.paused()) return ok(`has the minter role in registry ${registryAddress}`);
  const simulate = createMintSimulation(client, { registryAddress, walletAddress: address });
  await simulate(trialMint(address));
  return ok(`may mint: registry ${registryAddress} would accept a mint`);
}

async function checkFunds(
  client: Chain,
  { wallet: { address }, registryAddress }: NonNullable<CheckedNode['issuing']>,
  network: Network,
  settings: Settings,
): Promise<Statements[number]> {
  const minter = { registryAddress, walletAddress: address };
  const { costWei, funds } = await readFunds({
    readBalance: () => balanceOf(client, address),
    readFees: () => readNetworkFees(client.time, network, settings, () => estimateFees(client)),
    estimateGas: () => estimateMint(client, minter, trialMint(address)),
  });
  const { balanceWei, mintsAffordable, gasOfMint, isGasEstimated } = funds;
  if (mintsAffordable === undefined) return ok('needs no balance: gas is free');
  const source = isGasEstimated ? 'as the node estimates' : 'as documented: it cannot be estimated now';
  const statement =
    `has ${amount(balanceWei, network)}, enough for ${mintsAffordable} mints at the fees of now, ` +
    `with ${gasOfMint.toLocaleString('en')} gas each, ${source}`;
  if (mintsAffordable >= FEW_MINTS) return ok(statement);
  const remedy = `Send ${network.currency} to it: a mint needs ${amount(costWei, network)}.`;
  return { status: mintsAffordable === 0 ? 'fault' : 'warning', statement, remedy };
}

/**
 * Finds a node that asks for more than the fees of now. It is given a transaction of a wallet that is empty
 * and forgotten at once, which can never be mined: nodes look at the fee before they look at the balance.
 */
async function checkFees(client: Chain, network: Network, settings: Settings): Promise<Statements> {
  const fees = await readNetworkFees(client.time, network, settings, () => estimateFees(client));
  if (highestGasPrice(fees) === 0n) return [];
  const { chainId } = network;
  const stranger = openWallet(systemTime, { privateKey: hexlify(randomBytes(32)) });
  const call = { to: stranger.address, chainId, data: '0x', nonce: 0, gasLimit: 21_000n };
  const outcome = await broadcast(client, await stranger.sign({ ...call, ...fees }));
  const cause = 'cause' in outcome ? outcome.cause : undefined;
  const refusal = classifyRefusal(cause);
  if (refusal === 'no funds') return [ok('the node takes the fees of now')];
  if (refusal !== 'fee too low') return [];
  const words = nodeErrorOf(cause) ?? '';
  const statement = `the node refuses the fees of now: ${cut(words)}`;
  if (withLeastTip(fees, namedTip(words)) === fees)
    return [{ status: 'fault', statement, remedy: `${LEAST_FEE_REMEDY}.` }];
  const remedy = `${LEAST_FEE_REMEDY}: without it, the first mint after each start is refused once.`;
  return [{ status: 'warning', statement, remedy }];
}

async function checkNonces(client: Chain, address: string): Promise<Statements[number]> {
  const [mined, all] = await Promise.all([
    transactionCountOf(client, address, 'latest'),
    transactionCountOf(client, address, 'pending'),
  ]);
  const waiting = Math.max(0, all - mined);
  return ok(
    waiting === 0
      ? `has sent ${mined} transactions, none of which waits`
      : `has ${waiting} transactions that wait to be mined`,
  );
}
