import type { Operations } from './devnet';
import { operate, OPERATIONS, type Operands, type OperatedRegistry, type OperationName } from './operations';

/** A function for each operation of the contracts. Those of a token take its id first. */
export function namedOperations(registry: OperatedRegistry): Operations {
  const names = Object.keys(OPERATIONS) as OperationName[];
  const functions = names.map((name) => [
    name,
    OPERATIONS[name].on === 'registry'
      ? (operands?: Operands) => operate(registry, name, { ...operands })
      : (tokenId: string, operands?: Operands) => operate(registry, name, { ...operands, tokenId }),
  ]);
  return Object.fromEntries(functions) as Operations;
}
