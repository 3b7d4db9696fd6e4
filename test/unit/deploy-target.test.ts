import { expect } from 'chai';
import hre from 'hardhat';
import { targetOf } from '../../deploy/registry/target';

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
