import { JsonRpcProvider, Wallet, type JsonRpcPayload, type JsonRpcResult } from 'ethers';
import { createProvider } from 'hardhat/internal/core/providers/construction';
import type { Database } from '../../../service/database/database';
import { TradeTrustTokenStandard__factory } from '../../../typechain-types';
import { installContracts } from '../../../devnet/local-chain';
import { hre } from '../chain/in-process-chain';
import { DEPLOYER } from '../chain/local-setup';
import type { RpcAnswer, RpcCall } from '../chain/rpc-proxy';
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

/** Deploys the registry. The wallet of the service may mint; another account may also pause. */
async function deployRegistry(node: NodeInProcess): Promise<string> {
  const client = new ClientOfNode(node);
  const registryAddress = await (await installContracts(client))();
  const signer = await client.getSigner(DEPLOYER);
  const registry = TradeTrustTokenStandard__factory.connect(registryAddress, signer);
  await registry.grantRole(await registry.DEFAULT_ADMIN_ROLE(), new Wallet(ADMIN_KEY).address);
  client.destroy();
  return registryAddress;
}

/** A client whose calls are answered in this process. */
export abstract class ClientInProcess extends JsonRpcProvider {
  protected abstract answer(call: RpcCall): Promise<RpcAnswer>;

  override async _send(payload: JsonRpcPayload | JsonRpcPayload[]): Promise<JsonRpcResult[]> {
    const answers = [payload].flat().map(async ({ id, method, params }) => ({
      id,
      ...(await this.answer({ method, params: params as readonly unknown[] })),
    }));
    return (await Promise.all(answers)) as JsonRpcResult[];
  }
}

class ClientOfNode extends ClientInProcess {
  constructor(private readonly node: NodeInProcess) {
    super(undefined, 31337, { staticNetwork: true, batchMaxCount: 1, cacheTimeout: -1 });
  }

  protected answer({ method, params }: RpcCall): Promise<RpcAnswer> {
    return this.node.ask(method, params);
  }
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
