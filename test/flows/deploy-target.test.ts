import { expect } from 'chai';
import hre from 'hardhat';
import { identifyChain } from '../../deploy/registry/node';
import { targetOf, type Target } from '../../deploy/registry/target';
import { findNetwork } from '../../service/chain/networks';

describe('what npx hardhat deploy is about to pay for', () => {
  it('is asked for on a network that is known', () => {
    expect(targetOf(hre, { NET: 'amoy' })).to.include({ name: 'hardhat', isLocal: true });
  });

  for (const [name, value] of [
    ['NET', 'goerli'],
    ['TOKEN_REGISTRY_ADDRESS', '0x1234'],
  ] as const) {
    it(`is not asked for while ${name} is wrong, although it is read in the end only`, () => {
      expect(() => targetOf(hre, { [name]: value })).to.throw(`${name} "${value}" is not`);
    });
  }
});

describe('a local node that is not there', () => {
  for (const [name, command] of [
    ['localhost', '`npx hardhat node`'],
    ['local', '`LOCAL_CHAIN_ID=1337 npx hardhat node`'],
  ] as const) {
    it(`is started for the network ${name} with ${command}, says the error`, async () => {
      const target: Target = { network: findNetwork(name), name, isLocal: true, node: 'http://127.0.0.1:9' };
      const settings = { RPC_URL: target.node };
      const nobody = () => Promise.reject(new Error('is not asked'));
      const error: unknown = await identifyChain(nobody, target, settings).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'RPC_UNREACHABLE' });
      expect(error).to.have.property('remedy', `Start one with ${command}, or set RPC_URL to yours.`);
    });
  }
});

describe('npx hardhat test', () => {
  it('runs on a chain in its process, whatever NET is', async () => {
    expect(hre.network.name).to.equal('hardhat');
    expect(await hre.network.provider.send('web3_clientVersion')).to.match(/^HardhatNetwork/);
  });
});
