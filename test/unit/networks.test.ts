import { expect } from 'chai';
import { constants } from '@tradetrust-tt/token-registry';
import { rpcUrlOf } from '../../service/settings';
import { NETWORKS, findNetwork } from '../../service/chain/networks';

describe('networks', () => {
  it('have different ids and names', () => {
    for (const key of ['chainId', 'name', 'chainKey'] as const) {
      expect(new Set(NETWORKS.map((network) => network[key])).size, key).to.equal(NETWORKS.length);
    }
  });

  it('include every chain on which the v5 contracts are published', () => {
    for (const chainId of Object.keys(constants.contractAddress.Deployer)) {
      expect(findNetwork(chainId), chainId).not.to.equal(undefined);
    }
  });

  for (const network of NETWORKS) {
    it(`${network.name} is found by id and name and has a complete RPC URL`, () => {
      expect(findNetwork(String(network.chainId))).to.equal(network);
      expect(findNetwork(` ${network.name.toUpperCase()} `)).to.equal(network);
      const url = rpcUrlOf(network, network.rpcKey ? { [network.rpcKey]: 'a key/?' } : {});
      expect(url).to.match(/^https?:\/\//);
      if (network.rpcKey) expect(url).to.match(/\/a%20key%2F%3F$/);
      expect(URL.canParse(url)).to.equal(true);
      expect(url).not.to.contain('{');
    });
  }
});
