import { devNull } from 'node:os';
import { constants } from '@tradetrust-tt/token-registry';
import { expect } from 'chai';
import { getAddress } from 'ethers';
import { addressLink, transactionLink } from '../../cli/transactions';
import { checkNode, hardhatNetworks, networkOf } from '../../deploy/networks';
import { publishedContractsOf } from '../../deploy/published-contracts';
import { NETWORKS, findNetwork, type Network } from '../../service/chain/networks';
import { loadConfig } from '../../service/config/config';
import { feeTermsOf, rpcUrlsOf } from '../../service/config/settings';
import { errorOf } from '../helpers/error-of';
import { readDocument, tables } from '../helpers/pages/markdown';

const KEY = 'a key/?';
/** Keeps the developer's own settings out. */
const NO_FILES = { ENV_FILE: devNull, SERVICE_CONFIG: '/nowhere/service.config.json' };
const PUBLIC = NETWORKS.filter(({ local }) => !local);

describe('networks', () => {
  it('have distinct ids, names, chain keys and explorers', () => {
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

  for (const network of NETWORKS) {
    const { name, chainId, rpcKey, gasPricing, explorerApi } = network;

    it(`${name} is found by its id and its name, and configured in Hardhat`, () => {
      expect(findNetwork(String(chainId))).to.equal(network);
      expect(findNetwork(` ${name.toUpperCase()} `)).to.equal(network);
      const { [name]: known } = hardhatNetworks({}).networks;
      expect(known).to.have.property('chainId', chainId);
    });

    it(`${name} has a kind of fees and of explorer that are known`, () => {
      expect(gasPricing).to.be.oneOf(['eip-1559', 'legacy', 'free']);
      expect(explorerApi).to.be.oneOf(['etherscan', 'blockscout', undefined]);
    });

    it(`${name} has a complete RPC URL, with its provider's key if it has one`, () => {
      const [url] = rpcUrlsOf(network, rpcKey ? { [rpcKey]: KEY } : {});
      expect(url).to.match(network.local ? /^http:/ : /^https:/);
      if (rpcKey) expect(url).to.match(/\/a%20key%2F%3F$/);
      expect(URL.canParse(url)).to.equal(true);
      expect(url).not.to.match(/[{}]|undefined/);
      if (rpcKey === undefined) return;
      const others = { PROVIDER_API_KEY: KEY, NETWORK_A_API_KEY: KEY, NETWORK_A_TESTNET_API_KEY: KEY };
      expect(() => rpcUrlsOf(network, { ...others, [rpcKey]: undefined })).to.throw(
        new RegExp(`${rpcKey} is needed to reach ${name}.* RPC_URL`),
      );
    });

    if (!network.local)
      it(`${name} has three published contracts with checksums, and links to an explorer`, () => {
        const published = Object.values<string>({ ...publishedContractsOf(chainId) });
        expect(published).to.have.length(3);
        for (const address of published) expect(getAddress(address.toLowerCase())).to.equal(address);
        expect(transactionLink(network, '0xab')).to.match(/^https:\/\/[a-z0-9.-]+\/tx\/0xab$/);
        expect(addressLink(network, '0xcd')).to.match(/^https:\/\/[a-z0-9.-]+\/address\/0xcd$/);
      });
  }

  it('include Stability at the endpoint of its provider that takes transactions without fees', () => {
    const [url] = rpcUrlsOf(findNetwork('stability') as Network, { NETWORK_A_API_KEY: 'k' });
    expect(url).to.equal('https://rpc.stabilityprotocol.com/zgt/k');
  });

  it('have a gas station only with EIP-1559; GAS_STATION_URL replaces it or turns it off', () => {
    for (const network of NETWORKS) {
      const { gasStationUrl, gasPricing } = network;
      if (gasStationUrl !== undefined) expect(gasPricing).to.equal('eip-1559');
      expect(feeTermsOf(network, {}).stationUrl).to.equal(gasStationUrl);
      expect(feeTermsOf(network, { GAS_STATION_URL: 'none' }).stationUrl).to.equal(undefined);
      expect(feeTermsOf(network, { GAS_STATION_URL: 'http://own' }).stationUrl).to.equal('http://own');
    }
  });

  it('are listed correctly in docs/networks.md', () => {
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

  it('are listed in the error about an unknown network', () => {
    const refused = (): unknown => loadConfig({ ...NO_FILES, NET: 'goerli' });
    expect(refused).to.throw('NET "goerli" is not a known network');
    for (const { name, chainId } of NETWORKS) expect(refused).to.throw(`${name} (${chainId})`);
  });
});

describe('the network of npx hardhat deploy', () => {
  it('is one of the table, with valid settings', () => {
    for (const settings of [{ NET: 'goerli' }, { TOKEN_REGISTRY_ADDRESS: '0x1234' }])
      expect(() => networkOf('localhost', settings)).to.throw(/^\w+ "\w+" is not/);
    expect(() => networkOf('hardhat', {}))
      .to.throw('There is no network "hardhat"')
      .with.property('code', 'NETWORK_UNKNOWN');
  });

  for (const [name, command] of [
    ['localhost', '`npx hardhat node`'],
    ['local', '`LOCAL_CHAIN_ID=1337 npx hardhat node`'],
  ] as const) {
    it(`names ${command} when there is no node of ${name}`, async () => {
      const checked = checkNode(findNetwork(name) as Network, { RPC_URL: 'http://127.0.0.1:9' });
      const remedy = `Start one with ${command}, or set RPC_URL to yours.`;
      expect(await errorOf(checked)).to.include({ code: 'RPC_UNREACHABLE', remedy });
    });
  }
});
