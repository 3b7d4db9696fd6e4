import { expect } from 'chai';
import { explorerError, explorers, networkToVerifyOn } from '../../deploy/explorers';
import { NETWORKS } from '../../service/chain/networks';

const KEY = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567';
const SETTINGS = { RPC_URL: 'http://127.0.0.1:8545', ETHERSCAN_API_KEY: KEY };

describe('the explorer that npx hardhat verify asks', () => {
  const { etherscan, blockscout, sourcify } = explorers({});

  it("is the network's own, with the API that it offers", () => {
    const urls = (chains: { network: string; urls: { apiURL: string } }[] = []) =>
      Object.fromEntries(chains.map((chain) => [chain.network, chain.urls.apiURL]));
    const ofEtherscan = ['mainnet', 'sepolia', 'polygon', 'amoy', 'xdc', 'xdcapothem'];
    expect(urls(etherscan?.customChains)).to.deep.equal(
      Object.fromEntries(ofEtherscan.map((name) => [name, 'https://api.etherscan.io/v2/api'])),
    );
    expect(urls(blockscout?.customChains)).to.deep.equal({
      stability: 'https://stability.blockscout.com/api',
      stabilitytestnet: 'https://stability-testnet.blockscout.com/api',
    });
    expect(sourcify).to.deep.equal({ enabled: false });
    for (const { name, explorerApi } of NETWORKS.filter((network) => network.explorerApi !== undefined))
      expect(networkToVerifyOn(name, SETTINGS).explorerApi, name).to.equal(explorerApi);
  });

  for (const name of ['localhost', 'local', 'astron', 'hardhat']) {
    it(`does not exist for ${name}`, () => {
      expect(() => networkToVerifyOn(name, SETTINGS)).to.throw(`the source of contracts on ${name}.`);
    });
  }

  it('needs an API key if it is Etherscan, but not if it is Blockscout', () => {
    const { RPC_URL } = SETTINGS;
    expect(() => networkToVerifyOn('amoy', { RPC_URL })).to.throw('ETHERSCAN_API_KEY is needed to verify');
    expect(networkToVerifyOn('stability', { RPC_URL }).explorerApi).to.equal('blockscout');
  });

  for (const wrong of ['"quoted-0123456789abcdef"', 'https://api.etherscan.io/?apikey=0123456789', 'short']) {
    it(`is not given the malformed key ${wrong}, which the error does not print`, () => {
      const settings = { ...SETTINGS, ETHERSCAN_API_KEY: wrong };
      expect(() => networkToVerifyOn('sepolia', settings))
        .to.throw('ETHERSCAN_API_KEY is not a key')
        .with.property('message')
        .that.does.not.contain(wrong);
    });
  }

  it('refuses a key with an error that names the setting; other errors stay unchanged', () => {
    const refusal = new Error('Invalid API Key (#err2)|amoy');
    const refused = explorerError(refusal);
    expect(refused).to.include({ code: 'NOT_CONFIGURED', cause: refusal });
    expect(refused).to.have.property('message').that.contains('ETHERSCAN_API_KEY is refused by Etherscan');
    const other = new Error('Fail - Unable to verify');
    expect(explorerError(other)).to.equal(other);
  });

  it('is not asked if NET is unknown or the provider key of its node is missing', () => {
    expect(() => networkToVerifyOn('hardhat', { ...SETTINGS, NET: 'goerli' })).to.throw(
      'NET "goerli" is not',
    );
    expect(() => networkToVerifyOn('amoy', { ETHERSCAN_API_KEY: KEY })).to.throw(
      'PROVIDER_API_KEY is needed',
    );
  });
});
