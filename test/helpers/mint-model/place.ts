import { AbiCoder, type ContractDeployTransaction } from 'ethers';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import type { Database } from '../../../service/database/database';
import { registryInterface } from '../../../service/registry/registry-contracts';
import {
  ERC1967Proxy__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
} from '../../../typechain-types';
import { hre } from '../chain/in-process-chain';
import { DEPLOYER } from '../chain/local-setup';
import type { RpcAnswer } from '../chain/rpc-proxy';
import { newState, openState } from '../database/engines';

/** A real node with a registry, and a real database. Scenarios run in it one after the other. */
export interface MintPlace {
  node: NodeInProcess;
  registryAddress: string;
  database: Database;
  /** Takes the chain back to its beginning. */
  reset(): Promise<void>;
}

/** The published key of the second account of every Hardhat node, which may pause the registry. */
export const ADMIN_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';
const ADMIN = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const ADMIN_ROLE = `0x${'00'.repeat(32)}`;

/** More than any deployment needs, and less than the limit of a transaction. */
const GAS = '0xf00000';

/** Creates a node that mines on request, deploys a registry and opens a database. */
export async function createMintPlace(): Promise<MintPlace> {
  const state = await newState('SQLite');
  if (state === undefined) throw new Error('there is no SQLite');
  const database = await openState(state);
  const node = await createNodeInProcess();
  const registryAddress = await deployRegistry(node);
  await node.call('evm_setAutomine', false);
  let snapshot = await node.call('evm_snapshot');
  return {
    node,
    registryAddress,
    database,
    async reset() {
      if ((await node.call('evm_revert', snapshot)) !== true) throw new Error('could not go back');
      snapshot = await node.call('evm_snapshot');
    },
  };
}

/**
 * Deploys the registry without the deployer contract. The wallet of the service may mint; another account may
 * also pause.
 */
async function deployRegistry(node: NodeInProcess): Promise<string> {
  const factory = await deploy(node, await new TitleEscrowFactory__factory().getDeployTransaction());
  const implementation = await new TradeTrustTokenStandard__factory().getDeployTransaction();
  const coder = AbiCoder.defaultAbiCoder();
  const names = coder.encode(['string', 'string', 'address'], ['Bills', 'BL', DEPLOYER]);
  const parameters = coder.encode(['bytes', 'address'], [names, factory]);
  const initialize = registryInterface.encodeFunctionData('initialize', [parameters]);
  const proxy = new ERC1967Proxy__factory();
  const registryAddress = await deploy(
    node,
    await proxy.getDeployTransaction(await deploy(node, implementation), initialize),
  );
  const data = registryInterface.encodeFunctionData('grantRole', [ADMIN_ROLE, ADMIN]);
  await node.call('eth_sendTransaction', { from: DEPLOYER, to: registryAddress, data, gas: GAS });
  return registryAddress;
}

async function deploy(node: NodeInProcess, { data }: ContractDeployTransaction): Promise<string> {
  const hash = await node.call('eth_sendTransaction', { from: DEPLOYER, data, gas: GAS });
  const receipt = await node.call('eth_getTransactionReceipt', hash);
  return (receipt as { contractAddress: string }).contractAddress;
}

/**
 * A Hardhat node in this process: `hardhat node` without its server. It answers in a tenth of a millisecond.
 */
export interface NodeInProcess {
  /** Makes a call, and returns the answer that the node's server would give. */
  ask(method: string, params: readonly unknown[]): Promise<RpcAnswer>;
  /** Makes a call, and returns its result. @throws Error when the node refuses. */
  call(method: string, ...params: unknown[]): Promise<unknown>;
}

interface NodeError {
  code?: number;
  message?: string;
  data?: unknown;
}

const INTERNAL_ERROR = -32603;

/** Creates a node with its own chain. */
async function createNodeInProcess(): Promise<NodeInProcess> {
  const provider = await createProvider(hre.config, 'hardhat', hre.artifacts);
  const ask: NodeInProcess['ask'] = (method, params) =>
    provider.request({ method, params: [...params] }).then(
      (result) => ({ result }),
      (thrown: unknown) => ({ error: errorOf(thrown as NodeError) }),
    );
  return {
    ask,
    async call(method, ...params) {
      const answer = await ask(method, params);
      if ('result' in answer) return answer.result;
      throw new Error(`${method}: ${answer.error.message}`);
    },
  };
}

/** Converts an error as Hardhat's JsonRpcHandler does. */
function errorOf({ code = INTERNAL_ERROR, message = '', data }: NodeError) {
  const inner = (data as { data?: unknown } | undefined)?.data ?? data;
  return { code, message, data: { message, ...(inner !== undefined && { data: inner }) } };
}
