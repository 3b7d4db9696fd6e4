import { expect } from 'chai';
import { RequestError } from '../../service/base/errors';
import { parseRegistry } from '../../service/followed-registries/parse-registry';

const ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

describe('the body of POST /registries', () => {
  it('names the network by its name or its chain id, and the address in any case', () => {
    for (const network of ['amoy', '80002', 80002])
      for (const address of [ADDRESS, ADDRESS.toLowerCase()])
        expect(parseRegistry({ network, address })).to.include({ address: ADDRESS });
    const { network, ...given } = parseRegistry({
      network: 'amoy',
      address: ADDRESS,
      startBlock: 0,
      confirmations: 100_000,
    });
    expect(network.chainId).to.equal(80002);
    expect(given).to.deep.equal({ address: ADDRESS, startBlock: 0, confirmations: 100_000 });
  });

  for (const [what, body, message] of [
    ['an unknown member', { foo: 1 }, '/foo is not a member of a registry. Leave it out'],
    ['an RPC URL', { rpcUrl: 'http://localhost' }, '/rpcUrl is set in service.config.json only.'],
    ['a webhook', { webhook: {} }, '/webhook is set in service.config.json only.'],
    ['no network', { network: undefined }, '/network must be the name or the chain id of a network'],
    ['an unknown network', { network: 'nowhere' }, '/network is not a known network. Use one of'],
    ['no address', { address: undefined }, '/address must be a string, but it is missing.'],
    ['a short address', { address: '0x12' }, '/address is not an address.'],
    ['an address without 0x', { address: ADDRESS.slice(2) }, '/address is not an address.'],
    ['a wrong checksum', { address: ADDRESS.replace('c79', 'C79') }, '/address has a wrong checksum.'],
    ['a wrong block', { startBlock: -1 }, '/startBlock must be a whole number from 0'],
    ['a block above 2^53 - 1', { startBlock: 2 ** 53 }, '/startBlock must be a whole number from 0'],
    ['half a confirmation', { confirmations: 0.5 }, '/confirmations must be a whole number from 0'],
    [
      'another tag',
      { confirmations: 'latest' },
      '/confirmations must be a whole number from 0 to 100000, "fin',
    ],
    ['too many confirmations', { confirmations: 100_001 }, '/confirmations must be a whole number from 0'],
  ] as const)
    it(`is refused with ${what}, by a message with JSON pointer and remedy`, () => {
      const given: object = { ...{ network: 'amoy', address: ADDRESS }, ...body };
      expect(() => parseRegistry(given))
        .to.throw(RequestError, message)
        .with.property('code', 'REGISTRY_INVALID');
    });

  it('is an object', () => {
    expect(() => parseRegistry([])).to.throw(RequestError, 'The body must be an object, but it is an array.');
  });
});
