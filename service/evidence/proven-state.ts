import { AbiCoder, dataSlice, decodeRlp, keccak256, toBeHex, zeroPadValue } from 'ethers';
import { titleEscrowAddress } from '../registry/registry-contracts';
import type { EvidenceFile, EvidenceState } from './evidence-file';
import { openTrie, type ProvenReading } from './tries';

/** Positions of the variables of TitleEscrow that are addresses. */
const ESCROW_SLOTS = { beneficiary: 2, holder: 3, nominee: 6, previousBeneficiary: 4, previousHolder: 5 };
const ESCROW_PARTIES = Object.keys(ESCROW_SLOTS) as (keyof typeof ESCROW_SLOTS)[];
/** The members of a state that are addresses. */
export const STATE_PARTIES = ['owner', ...ESCROW_PARTIES] as const;
/** The names of the variables that say who controls a token. */
type VariableName = (typeof STATE_PARTIES)[number] | 'isPaused';

/** SBTUpgradeable._owners. */
const OWNERS_SLOT = 3;
/** ERC-7201: openzeppelin.storage.Pausable. */
const PAUSED_SLOT = '0xcd5ed15c6e187e77e9aee88184c21f4f2182ab5827cb3b7e07fbedcd63f03300';

/** A variable of a contract. */
interface Variable {
  address: string;
  /** 32 bytes. */
  slot: string;
}

/** The variables that say who controls a token. */
export function variablesOf(file: TokenContracts): Record<VariableName, Variable> {
  const { registry, titleEscrow } = contractsOf(file);
  const variable = (address: string, slot: string | number) => ({ address, slot: toBeHex(slot, 32) });
  const key = [`0x${file.tokenId}`, OWNERS_SLOT];
  const owner = keccak256(AbiCoder.defaultAbiCoder().encode(['uint256', 'uint256'], key));
  const inEscrow = ESCROW_PARTIES.map((name) => [name, variable(titleEscrow, ESCROW_SLOTS[name])]);
  return {
    owner: variable(registry, owner),
    isPaused: variable(registry, PAUSED_SLOT),
    ...(Object.fromEntries(inEscrow) as Record<(typeof ESCROW_PARTIES)[number], Variable>),
  };
}

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
  const places = Object.entries(variablesOf(file));
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
  // The nominee's has a flag of the title escrow in front of it.
  const parties = STATE_PARTIES.map((name, index) => [name, dataSlice(words[index] ?? '', 12)]);
  return { ...Object.fromEntries(parties), isPaused: BigInt(isPaused) !== 0n } as ProvenMembers;
}
