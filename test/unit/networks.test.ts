import { devNull } from 'node:os';
import { constants } from '@tradetrust-tt/token-registry';
import { expect } from 'chai';
import { getAddress } from 'ethers';
import { addressLink, transactionLink } from '../../cli/transactions/explorer-link';
import { hardhatNetworks } from '../../deploy/hardhat-networks';
import { publishedContractsOf } from '../../deploy/registry/published-contracts';
import { createRpcClient } from '../../service/chain/rpc-client';
import { NETWORKS, findNetwork } from '../../service/chain/networks';
import { loadConfig } from '../../service/config/config';
import { gasStationUrlOf, rpcUrlOf } from '../../service/config/settings';
import { readDocument, tables } from '../helpers/pages/markdown';

const KEY = 'a key/?';
/** The developer's own settings stay out. */
const NO_FILES = { ENV_FILE: devNull, SERVICE_CONFIG: '/nowhere/service.config.json' };
const PUBLIC = NETWORKS.filter(({ local }) => !local);

describe('networks', () => {
  it('are those of the registry, and two local ones', () => {
    expect(NETWORKS.map(({ chainId, name }) => [name, chainId])).to.have.deep.members([
      ['local', 1337],
      ['localhost', 31337],
      ['mainnet', 1],
      ['polygon', 137],
      ['amoy', 80002],
      ['sepolia', 11155111],
      ['xdc', 50],
      ['xdcapothem', 51],
      ['stability', 101010],
      ['stabilitytestnet', 20180427],
      ['astron', 1338],
      ['astrontestnet', 21002],
    ]);
  });

  it('have different ids, names, keys and explorers', () => {
    for (const key of ['chainId', 'name', 'chainKey'] as const) {
      expect(new Set(NETWORKS.map((network) => network[key])).size, key).to.equal(NETWORKS.length);
    }
    expect(new Set(PUBLIC.map(({ explorerUrl }) => explorerUrl)).size).to.equal(PUBLIC.length);
  });

  it('include every chain on which the v5 contracts are published', () => {
    const { Deployer, TitleEscrowFactory, TokenImplementation } = constants.contractAddress;
    for (const chainId of [Deployer, TitleEscrowFactory, TokenImplementation].flatMap(Object.keys)) {
      expect(findNetwork(chainId), chainId).not.to.equal(undefined);
    }
  });

  it('have their fees estimated by the node, and by nobody that ethers knows', () => {
    for (const network of NETWORKS) {
      const client = createRpcClient('http://127.0.0.1:9', network);
      expect(client._network.plugins, network.name).to.deep.equal([]);
      client.destroy();
    }
  });

  for (const network of NETWORKS) {
    const { name, chainId, rpcKey } = network;

    it(`${name} is found by id and name`, () => {
      expect(findNetwork(String(chainId))).to.equal(network);
      expect(findNetwork(` ${name.toUpperCase()} `)).to.equal(network);
      expect(
        loadConfig({ ...NO_FILES, NET: String(chainId), RPC_URL: 'http://127.0.0.1:1' }).network,
      ).to.equal(network);
    });

    it(`${name} has a complete RPC URL, with its provider's key if it has one`, () => {
      const url = rpcUrlOf(network, rpcKey ? { [rpcKey]: KEY } : {});
      expect(url).to.match(network.local ? /^http:/ : /^https:/);
      if (rpcKey) expect(url).to.match(/\/a%20key%2F%3F$/);
      expect(URL.canParse(url)).to.equal(true);
      expect(url).not.to.match(/[{}]|undefined/);
    });

    it(`${name} is reached through RPC_URL instead, without a key`, () => {
      expect(rpcUrlOf(network, { RPC_URL: 'wss://own.example/x' })).to.equal('wss://own.example/x');
    });

    if (rpcKey)
      it(`${name} names ${rpcKey} when it is missing`, () => {
        expect(() => rpcUrlOf(network, {})).to.throw(
          new RegExp(`${rpcKey} is needed to reach ${name}.* RPC_URL`),
        );
        const others = { PROVIDER_API_KEY: KEY, NETWORK_A_API_KEY: KEY, NETWORK_A_TESTNET_API_KEY: KEY };
        expect(() => rpcUrlOf(network, { ...others, [rpcKey]: undefined })).to.throw(rpcKey);
      });

    it(`${name} is a network of Hardhat, with the same chain id`, () => {
      const { [name]: known } = hardhatNetworks().networks;
      expect(known).to.have.property('chainId', chainId);
    });
  }

  for (const network of PUBLIC) {
    const { name, chainId } = network;

    it(`${name} has the published contracts, with the right checksum`, () => {
      const published = Object.values<string>({ ...publishedContractsOf(chainId) });
      expect(published).to.have.length(3);
      for (const address of published) expect(getAddress(address.toLowerCase())).to.equal(address);
    });

    it(`${name} has links to an explorer`, () => {
      expect(transactionLink(network, '0xab')).to.match(/^https:\/\/[a-z0-9.-]+\/tx\/0xab$/);
      expect(addressLink(network, '0xcd')).to.match(/^https:\/\/[a-z0-9.-]+\/address\/0xcd$/);
    });

    it(`${name} waits for confirmations, and has blocks at intervals`, () => {
      expect(network.confirmations).to.be.within(1, 64);
      expect(network.blockTimeMs).to.be.within(500, 15_000);
    });
  }

  it('have a gas station only where it can be used, and one that GAS_STATION_URL replaces', () => {
    for (const network of NETWORKS) {
      const { gasStationUrl, gasPricing } = network;
      if (gasStationUrl !== undefined) expect(gasPricing).to.equal('eip-1559');
      expect(gasStationUrlOf(network, {})).to.equal(gasStationUrl);
      expect(gasStationUrlOf(network, { GAS_STATION_URL: 'none' })).to.equal(undefined);
      expect(gasStationUrlOf(network, { GAS_STATION_URL: 'http://own' })).to.equal('http://own');
    }
  });

  it('price gas as their chains do', () => {
    const pricing = Object.fromEntries(NETWORKS.map(({ name, gasPricing }) => [name, gasPricing]));
    expect(pricing).to.include({ mainnet: 'eip-1559', polygon: 'eip-1559', amoy: 'eip-1559' });
    expect(pricing).to.include({
      stability: 'free',
      stabilitytestnet: 'free',
      xdc: 'legacy',
      xdcapothem: 'legacy',
    });
  });

  it('are in docs/networks.md as they are', () => {
    const [table = []] = tables(readDocument('docs/networks.md').section('Networks'));
    const sources = { etherscan: 'Etherscan', blockscout: 'Blockscout' };
    const gas = { 'eip-1559': 'EIP-1559', legacy: 'gas price', free: 'none' };
    const expected = NETWORKS.map((network) => [
      `\`${network.chainId}\`, \`${network.name}\``,
      `\`${network.chainKey}\``,
      network.currency,
      network.rpcKey ? `\`${network.rpcKey}\`` : '',
      gas[network.gasPricing] + (network.gasStationUrl ? ', station' : ''),
      network.blockTimeMs > 0 ? `${network.blockTimeMs / 1_000} s` : '',
      String(network.confirmations),
      network.explorerApi ? sources[network.explorerApi] : '',
    ]);
    expect(table).to.have.deep.members(expected);
  });

  it('that are not known are refused with a list of those that are', () => {
    const refused = (): unknown => loadConfig({ ...NO_FILES, NET: 'goerli' });
    expect(refused).to.throw('NET "goerli" is not a known network');
    for (const { name, chainId } of NETWORKS) expect(refused).to.throw(`${name} (${chainId})`);
  });
});
