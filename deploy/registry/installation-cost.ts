import { utils } from '@tradetrust-tt/token-registry';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import type { EthereumProvider } from 'hardhat/types';
import { estimateGas, type PlannedTransaction } from './afford';
import type { DeployContext } from './context';

/** Printed with the estimate. */
export const INSTALLATION_REMARK =
  'This is an estimate: transactions that depend on missing contracts were tried on an in-process chain. ' +
  'The cost of the registry alone is shown again below.';

/** Contracts whose creation depends on no other contract, so the node can estimate it. */
const INDEPENDENT = ['TitleEscrowFactory', 'TradeTrustTokenStandard', 'DeployerImplementation'];

/** Gas by transaction. The key is the id of the future without its module. */
type Gas = Record<string, bigint>;

/**
 * Gas of installing the infrastructure and one registry on a chain that has neither. Contracts that an
 * interrupted run has deployed are left out (`deployed`: addresses by future).
 */
export async function estimateInstallation(
  context: DeployContext,
  deployed: Record<string, string>,
): Promise<bigint> {
  const { gas, creations } = await rehearse(context);
  const missing = Object.keys(gas).filter((name) => deployed[`Infrastructure#${name}`] === undefined);
  const estimates = missing.map(async (name) => {
    const creation = INDEPENDENT.includes(name) ? creations[name] : undefined;
    return creation === undefined ? (gas[name] ?? 0n) : estimateGas(context, creation);
  });
  return (await Promise.all(estimates)).reduce((sum, each) => sum + each, 0n);
}

/** Runs the whole installation on an in-process chain, with the module's own contracts and calls. */
async function rehearse({
  hre,
}: DeployContext): Promise<{ gas: Gas; creations: Record<string, PlannedTransaction> }> {
  const chain = await createProvider(hre.config, 'hardhat', hre.artifacts);
  const gas: Gas = {};
  const creations: Record<string, PlannedTransaction> = {};
  const send = async (name: string, transaction: PlannedTransaction): Promise<string> => {
    const sent = await sendOn(chain, transaction);
    gas[name] = sent.gas;
    return sent.contractAddress;
  };
  const create = async (name: string, contract: string, ...parameters: unknown[]): Promise<string> => {
    const factory = await hre.ethers.getContractFactory(contract);
    const { data } = await factory.getDeployTransaction(...parameters);
    creations[name] = { to: undefined, data };
    return send(name, creations[name]);
  };
  const { interface: deployer } = await hre.ethers.getContractFactory('TDocDeployer');
  const factory = await create('TitleEscrowFactory', 'TitleEscrowFactory');
  const token = await create('TradeTrustTokenStandard', 'TradeTrustTokenStandard');
  const logic = await create('DeployerImplementation', 'TDocDeployer');
  const initialize = deployer.encodeFunctionData('initialize');
  const proxy = await create('DeployerProxy', 'ERC1967Proxy', logic, initialize);
  const add = deployer.encodeFunctionData('addImplementation', [token, factory]);
  await send('addImplementation', { to: proxy, data: add });
  const admin = await accountOf(chain);
  const names = { name: 'x'.repeat(64), symbol: 'x'.repeat(32) };
  const init = utils.encodeInitParams({ ...names, deployer: admin }) as string;
  await send('Registry', { to: proxy, data: deployer.encodeFunctionData('deploy', [token, init]) });
  return { gas, creations };
}

async function sendOn(
  chain: EthereumProvider,
  { to, data }: PlannedTransaction,
): Promise<{ gas: bigint; contractAddress: string }> {
  const transaction = { from: await accountOf(chain), ...(to && { to }), data };
  const gas = (await chain.request({ method: 'eth_estimateGas', params: [transaction] })) as string;
  const hash = await chain.request({ method: 'eth_sendTransaction', params: [{ ...transaction, gas }] });
  const receipt = await chain.request({ method: 'eth_getTransactionReceipt', params: [hash] });
  const { contractAddress } = receipt as { contractAddress: string };
  return { gas: BigInt(gas), contractAddress };
}

async function accountOf(chain: EthereumProvider): Promise<string> {
  const [account = ''] = (await chain.request({ method: 'eth_accounts' })) as string[];
  return account;
}
