import { settingOf, type Settings } from '../../service/config/settings';
import { addressLink, transactionLink } from '../../cli/transactions';
import type { DeployContext } from './context';
import type { Infrastructure } from './infrastructure';
import type { Registry } from './registry';

/** A table of contracts and their addresses. */
export function addressTable(
  { chain, target }: DeployContext,
  infrastructure: Infrastructure,
  registry: Registry,
): string {
  const { titleEscrowFactory, tokenImplementation, deployer, status } = infrastructure;
  const rows = [
    ['title escrow factory', titleEscrowFactory, status],
    ['token implementation', tokenImplementation, status],
    ['deployer', deployer, status],
    [
      `token registry`,
      registry.address,
      registry.status === 'already there' ? 'already deployed' : registry.status,
    ],
  ];
  const width = Math.max(...rows.map(([what = '']) => what.length));
  const lines = rows.map(([what = '', address, how]) => `  ${what.padEnd(width)}  ${address}  ${how}`);
  const title = `"${registry.name}" (${registry.symbol}) on ${target.name}, chain ${chain.chainId}`;
  return [title, ...lines].join('\n');
}

/** Explorer links to the registry and to its deployment transaction, one a line. */
export function links({ target }: DeployContext, { address, transaction }: Registry): string[] {
  if (target.network === undefined) return [];
  const rows = [
    ['registry', addressLink(target.network, address)],
    ['transaction', transaction && transactionLink(target.network, transaction)],
  ];
  return rows.flatMap(([what = '', link]) => (link ? [`${what.padEnd(11)}  ${link}`] : []));
}

/** The steps that are left before the service can mint in this registry, one a line. */
export async function hints(
  context: DeployContext,
  registry: Registry,
  settings: Settings,
): Promise<string[]> {
  if (context.target.network === undefined) return [];
  return [
    ...netHint(context, settings),
    ...walletHint(context, settings),
    ...(await minterHint(context, registry, settings)),
  ];
}

function netHint({ chain, tenant }: DeployContext, settings: Settings): string[] {
  const { name, chainId } = settingOf(settings, 'NET');
  if (chainId === chain.chainId) return [];
  const wrong = `NET is ${name} (${chainId}), but this registry is on chain ${chain.chainId}`;
  return [`hint: ${wrong}: set NET=${chain.chainId} in ${tenant.isDefault ? '.env' : tenant.envFile}`];
}

function walletHint({ account, tenant }: DeployContext, settings: Settings): string[] {
  if (settingOf(settings, 'WALLET_PRIVATE_KEY') !== undefined) return [];
  const file = tenant.isDefault ? '.env' : tenant.envFile;
  return [
    `hint: deployed with the node's first account ${account}. The service needs WALLET_PRIVATE_KEY ` +
      `of a minter: set it in ${file} to that account's key, which \`npx hardhat node\` prints.`,
  ];
}

async function minterHint(
  { hre, account }: DeployContext,
  registry: Registry,
  settings: Settings,
): Promise<string[]> {
  if (settingOf(settings, 'WALLET_PRIVATE_KEY') === undefined) return [];
  const contract = await hre.ethers.getContractAt('TradeTrustTokenStandard', registry.address);
  if (await contract.hasRole(await contract.MINTER_ROLE(), account)) return [];
  const remedy = 'its admin must grant the role, or make a registry of your own with --new';
  return [`hint: the wallet ${account} has no minter role in this registry: ${remedy}.`];
}
