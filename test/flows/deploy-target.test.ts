import { expect } from 'chai';
import { identifyChain } from '../../deploy/registry/node';
import { targetOf, type Target } from '../../deploy/registry/target';
import { findNetwork } from '../../service/chain/networks';
import { hre } from '../helpers/chain/in-process-chain';

describe('the target of npx hardhat deploy', () => {
  it('is the network that Hardhat runs on, whatever NET is', () => {
    expect(targetOf(hre, { NET: 'amoy' })).to.include({ name: 'hardhat', isLocal: true });
  });

  for (const [name, value] of [
    ['NET', 'goerli'],
    ['TOKEN_REGISTRY_ADDRESS', '0x1234'],
  ] as const) {
    it(`is refused at the start when ${name} is invalid`, () => {
      expect(() => targetOf(hre, { [name]: value })).to.throw(`${name} "${value}" is not`);
    });
  }
});

describe('the error about a missing local node', () => {
  for (const [name, command] of [
    ['localhost', '`npx hardhat node`'],
    ['local', '`LOCAL_CHAIN_ID=1337 npx hardhat node`'],
  ] as const) {
    it(`names ${command} for the network ${name}`, async () => {
      const target: Target = { network: findNetwork(name), name, isLocal: true, node: 'http://127.0.0.1:9' };
      const settings = { RPC_URL: target.node };
      const nobody = () => Promise.reject(new Error('is not asked'));
      const error: unknown = await identifyChain(nobody, target, settings).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'RPC_UNREACHABLE' });
      expect(error).to.have.property('remedy', `Start one with ${command}, or set RPC_URL to yours.`);
    });
  }
});

describe('Hardhat in tests', () => {
  it('is on the in-process chain, whatever NET is', async () => {
    expect(hre.network.name).to.equal('hardhat');
    expect(await hre.network.provider.send('web3_clientVersion')).to.match(/^HardhatNetwork/);
  });
});
