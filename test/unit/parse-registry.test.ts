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

  for (const [body, message] of [
    [{ foo: 1 }, '/foo is not a member of a registry. Leave it out'],
    [{ rpcUrl: 'http://localhost' }, '/rpcUrl is set in service.config.json only. Leave it out'],
    [{ webhook: {} }, '/webhook is set in service.config.json only. Leave it out'],
    [{ network: undefined }, '/network must be the name or the chain id of a network'],
    [{ network: 'nowhere' }, '/network is not a known network. Use one of'],
    [{ address: undefined }, '/address must be a string, but it is missing.'],
    [{ address: '0x12' }, '/address is not an address.'],
    [{ address: ADDRESS.slice(2) }, '/address is not an address.'],
    [{ address: ADDRESS.replace('c79', 'C79') }, '/address has a wrong checksum.'],
    [{ startBlock: -1 }, '/startBlock must be a whole number from 0'],
    [{ startBlock: 2 ** 53 }, '/startBlock must be a whole number from 0'],
    [{ confirmations: 0.5 }, '/confirmations must be a whole number from 0'],
    [{ confirmations: 'latest' }, '/confirmations must be a whole number from 0 to 100000, "fin'],
    [{ confirmations: 100_001 }, '/confirmations must be a whole number from 0'],
  ] as const)
    it(`is refused with ${JSON.stringify(body)}, by a message with JSON pointer and remedy`, () => {
      const given: object = { ...{ network: 'amoy', address: ADDRESS }, ...body };
      expect(() => parseRegistry(given))
        .to.throw(RequestError, message)
        .with.property('code', 'REGISTRY_INVALID');
    });

  it('is an object', () => {
    expect(() => parseRegistry([])).to.throw(RequestError, 'The body must be an object, but it is an array.');
  });
});
