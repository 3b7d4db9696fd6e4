import { expect } from 'chai';
import { explorerError, explorers, networkToVerifyOn } from '../../deploy/explorers';
import { NETWORKS } from '../../service/chain/networks';

const KEY = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567';
const SETTINGS = { RPC_URL: 'http://127.0.0.1:8545', ETHERSCAN_API_KEY: KEY };

describe('the explorer that npx hardhat verify asks', () => {
  const { etherscan, blockscout, sourcify } = explorers();

  it('is that of the network, by the API that it has', () => {
    const urls = (chains: { network: string; urls: { apiURL: string } }[] = []) =>
      Object.fromEntries(chains.map((chain) => [chain.network, chain.urls.apiURL]));
    const v2 = 'https://api.etherscan.io/v2/api';
    expect(urls(etherscan?.customChains)).to.deep.equal({
      mainnet: v2,
      sepolia: v2,
      polygon: v2,
      amoy: v2,
      xdc: v2,
      xdcapothem: v2,
    });
    expect(urls(blockscout?.customChains)).to.deep.equal({
      stability: 'https://stability.blockscout.com/api',
      stabilitytestnet: 'https://stability-testnet.blockscout.com/api',
    });
    for (const { name, explorerApi } of NETWORKS.filter((network) => network.explorerApi !== undefined))
      expect(networkToVerifyOn(name, SETTINGS).explorerApi, name).to.equal(explorerApi);
  });

  it('is no third party', () => {
    expect(sourcify).to.deep.equal({ enabled: false });
  });

  for (const name of ['localhost', 'local', 'astron', 'hardhat']) {
    it(`is not known on ${name}`, () => {
      expect(() => networkToVerifyOn(name, SETTINGS)).to.throw(`the source of contracts on ${name}.`);
    });
  }

  it('wants a key of Etherscan, and of Blockscout none', () => {
    const { RPC_URL } = SETTINGS;
    expect(() => networkToVerifyOn('amoy', { RPC_URL })).to.throw('ETHERSCAN_API_KEY is needed to verify');
    expect(networkToVerifyOn('stability', { RPC_URL }).explorerApi).to.equal('blockscout');
  });

  for (const wrong of ['"quoted-0123456789abcdef"', 'https://api.etherscan.io/?apikey=0123456789', 'short']) {
    it(`does not get ${wrong} for a key, and the error does not show it`, () => {
      const settings = { ...SETTINGS, ETHERSCAN_API_KEY: wrong };
      expect(() => networkToVerifyOn('sepolia', settings))
        .to.throw('ETHERSCAN_API_KEY is not a key')
        .with.property('message')
        .that.does.not.contain(wrong);
    });
  }

  it('refuses a key: the error says which setting it is', () => {
    const refusal = new Error('Invalid API Key (#err2)|amoy');
    const refused = explorerError(refusal);
    expect(refused).to.include({ code: 'NOT_CONFIGURED', cause: refusal });
    expect(refused).to.have.property('message').that.contains('ETHERSCAN_API_KEY is refused by Etherscan');
    const other = new Error('Fail - Unable to verify');
    expect(explorerError(other)).to.equal(other);
  });

  it('is not asked while NET is wrong, or its node cannot be reached for want of a key', () => {
    expect(() => networkToVerifyOn('hardhat', { ...SETTINGS, NET: 'goerli' })).to.throw(
      'NET "goerli" is not',
    );
    expect(() => networkToVerifyOn('amoy', { ETHERSCAN_API_KEY: KEY })).to.throw(
      'PROVIDER_API_KEY is needed',
    );
  });
});
