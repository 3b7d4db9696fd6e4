import { createProvider } from 'hardhat/internal/core/providers/construction';
import { hre } from '../chain/in-process-chain';
import type { RpcAnswer } from '../chain/rpc-proxy';

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
export async function createNodeInProcess(): Promise<NodeInProcess> {
  const provider = await createProvider(hre.config, 'hardhat', hre.artifacts);
  const node: NodeInProcess = {
    async ask(method, params) {
      try {
        return { result: await provider.request({ method, params: [...params] }) };
      } catch (thrown) {
        return { error: errorOf(thrown as NodeError) };
      }
    },
    async call(method, ...params) {
      const answer = await node.ask(method, params);
      if ('result' in answer) return answer.result;
      throw new Error(`${method}: ${answer.error.message}`);
    },
  };
  return node;
}

/** Converts an error as Hardhat's JsonRpcHandler does. */
function errorOf({ code = INTERNAL_ERROR, message = '', data }: NodeError): {
  code: number;
  message: string;
  data: unknown;
} {
  const inner = (data as { data?: unknown } | undefined)?.data ?? data;
  return { code, message, data: { message, ...(inner !== undefined && { data: inner }) } };
}
