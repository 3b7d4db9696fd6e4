import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import { chainOfOne, type Chain } from './chain';
import type { Network } from './networks';
import { createNode, type Node, type Use } from './node';
import { NodeStates, type NodeReport } from './node-states';
import { createChainCheck } from './reach-node';
import { SeveralNodes } from './several-nodes';

/** A chain, and the states of its nodes. */
export interface ConnectedNodes {
  client: Chain;
  /** Rejects if a node is of another chain, or none answers. */
  checkChain: () => Promise<void>;
  /** The states of the nodes; undefined if there is only one. */
  report: () => NodeReport[] | undefined;
}

/** Connects to the nodes of a chain: one or several. */
export function connectNodes(
  urls: readonly string[],
  network: Network,
  time: Time,
  use?: Use,
  logger?: Logger,
): ConnectedNodes {
  const [url = '', ...others] = urls;
  const nodeAt = (nodeUrl: string): Node => createNode(nodeUrl, network, time, use);
  if (others.length > 0) return connectSeveral(urls.map(nodeAt), network, time, logger);
  const client = chainOfOne(nodeAt(url));
  return { client, checkChain: createChainCheck(client, url, network), report: () => undefined };
}

/** Makes a chain of two nodes or more. */
export function connectSeveral(
  nodes: readonly Node[],
  network: Network,
  time: Time,
  logger?: Logger,
): ConnectedNodes {
  const states = new NodeStates(nodes, network, time, logger);
  let isChecked = false;
  return {
    client: new SeveralNodes(states),
    async checkChain() {
      if (!isChecked) await states.checkChains();
      isChecked = true;
    },
    report: () => states.report(),
  };
}
