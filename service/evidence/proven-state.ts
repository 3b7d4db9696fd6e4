import { decodeRlp, zeroPadValue } from 'ethers';
import { titleEscrowAddress } from '../registry/registry-contracts';
import type { EvidenceFile, EvidenceState } from './evidence-file';
import { addressIn, STATE_PARTIES, variablesOf, type VariableName } from './published-contracts';
import { openTrie, type ProvenReading } from './tries';

/** An account, as the state trie of a block has it. */
interface ProvenAccount {
  storageRoot: string;
  codeHash: string;
}

/** The parts of the state of a block that nodes of its tries prove. Undefined: not proven. */
export interface ProvenState {
  codeHashOf: (address: string) => string | undefined;
  /** Values of 32 bytes. */
  variables: Partial<Record<VariableName, string>>;
}

/** The members of a file from which the contracts of its token follow. */
type TokenContracts = Pick<EvidenceFile, 'contracts' | 'registry' | 'tokenId'>;

/** The contracts of the token that a file is about, its title escrow among them. */
export function contractsOf({ contracts, registry, tokenId }: TokenContracts) {
  const titleEscrow = titleEscrowAddress({ registry, ...contracts }, BigInt(`0x${tokenId}`));
  return { ...contracts, registry, titleEscrow };
}

/** Reads what the nodes prove of the state with this root (EIP-1186). */
export function readProvenState(
  file: TokenContracts,
  nodes: { accountNodes: readonly string[]; storageNodes: readonly string[] },
  stateRoot: string,
): ProvenState {
  const contracts = contractsOf(file);
  const readAccount = openTrie(stateRoot, nodes.accountNodes, { isSecure: true });
  const accounts = new Map<string, ProvenAccount>();
  for (const address of Object.values(contracts)) {
    const account = accountIn(readAccount(address));
    if (account) accounts.set(address, account);
  }
  const places = Object.entries(variablesOf(contracts, file.tokenId));
  const storages = new Map<string, ProvenReading>();
  for (const address of new Set(places.map(([, place]) => place.address))) {
    const root = accounts.get(address)?.storageRoot;
    if (root) storages.set(address, openTrie(root, nodes.storageNodes, { isSecure: true }));
  }
  const variables: ProvenState['variables'] = {};
  for (const [name, { address, slot }] of places) {
    const stored = storages.get(address)?.(slot);
    if (stored !== undefined) variables[name as VariableName] = wordIn(stored);
  }
  return { codeHashOf: (address) => accounts.get(address)?.codeHash, variables };
}

function accountIn(encoded: string | undefined): ProvenAccount | undefined {
  if (encoded === undefined || encoded === '0x') return undefined;
  const [, , storageRoot, codeHash] = decodeRlp(encoded) as string[];
  return storageRoot && codeHash ? { storageRoot, codeHash } : undefined;
}

/** The trie has no zeros at the beginning of a value, and no value that is zero. */
function wordIn(stored: string): string {
  return zeroPadValue(stored === '0x' ? stored : (decodeRlp(stored) as string), 32);
}

type ProvenMembers = Omit<EvidenceState, 'blockHash' | 'proof'>;

/** The members of a state, as its proof has them. Undefined unless all of them are proven. */
export function provenMembers({ variables }: ProvenState): ProvenMembers | undefined {
  const { isPaused } = variables;
  const words = STATE_PARTIES.flatMap((name) => variables[name] ?? []);
  if (isPaused === undefined || words.length < STATE_PARTIES.length) return undefined;
  const parties = STATE_PARTIES.map((name, index) => [name, addressIn(words[index] ?? '')]);
  return { ...Object.fromEntries(parties), isPaused: BigInt(isPaused) !== 0n } as ProvenMembers;
}
