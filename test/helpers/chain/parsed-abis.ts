import { Interface, type InterfaceAbi } from 'ethers';

const parsed = new WeakMap<object, Interface>();
const parse = Interface.from.bind(Interface);

// Each contract object parses the ABI of its generated factory, and tests make thousands of contract objects.
Interface.from = (abi: Interface | InterfaceAbi): Interface => {
  if (typeof abi === 'string') return parse(abi);
  const known = parsed.get(abi);
  if (known) return known;
  const made = parse(abi);
  parsed.set(abi, made);
  return made;
};
