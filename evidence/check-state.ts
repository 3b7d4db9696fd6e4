import { getAddress, keccak256, ZeroAddress } from 'ethers';
import { orUndefined } from '../service/base/errors';
import { BURN_ADDRESS } from '../service/registry/decode-log';
import type { TokenState } from '../service/registry/read-token-state';
import { timeOf, type CheckedBlock, type CheckedEvent } from './check-chain';
import type { EvidenceFile, EvidenceState } from '../service/evidence/evidence-file';
import {
  contractsOf,
  provenMembers,
  readProvenState,
  STATE_PARTIES,
  type ProvenState,
} from '../service/evidence/proven-state';
import { implementationOf, maskedCodeHash, PUBLISHED_CODE } from '../service/evidence/published-contracts';
import { createStatements, THE_FILE, type Statement } from './statements';

/** A state that a file has, with what its proof shows. */
export interface CheckedState {
  state: EvidenceState;
  block: CheckedBlock;
  proven: ProvenState | undefined;
  /** Whether the block's hash proves the parties. */
  isProven: boolean;
}

/** Compares the states in the file with their proofs. */
export function checkStates(
  file: EvidenceFile,
  blocks: readonly CheckedBlock[],
): { states: CheckedState[]; statements: Statement[] } {
  const { made, proven, claimed, refuted } = createStatements('state');
  const states: CheckedState[] = [];
  const contracts = contractsIn(file);
  for (const state of file.states) {
    const block = blocks.find((one) => one.block.hash === state.blockHash);
    if (block === undefined) {
      refuted(
        `The state at the end of block ${state.blockHash}.`,
        'the block is not in the file, or is refuted',
      );
      continue;
    }
    const says = stateInWords(file, state, block);
    const given = [state.blockHash];
    const { proof } = state;
    if ('problem' in proof) {
      states.push({ state, block, proven: undefined, isProven: false });
      claimed(says, `${proof.problem}; ${THE_FILE}`);
      continue;
    }
    const read = orUndefined(() => readProvenState(file, proof, block.header.stateRoot));
    const members = read && provenMembers(read);
    const isSame = members && STATE_PARTIES.every((name) => members[name] === state[name]);
    if (!read || !members) refuted(says, 'its Merkle proofs do not lead to the values');
    else if (!isSame || members.isPaused !== state.isPaused)
      refuted(says, 'its Merkle proofs lead to other values');
    else {
      const areKnown = contracts.every((contract) => contract.isPublished && hasSameCode(contract, read));
      states.push({ state, block, proven: read, isProven: block.isProven && areKnown });
      if (!areKnown)
        claimed(
          says,
          'the contracts do not run the published code: the meaning of their memory is not known here',
        );
      else if (block.isProven)
        proven(says, 'Merkle proofs lead to these values from the hash of the block', { given });
      else claimed(says, THE_FILE);
    }
  }
  return { states, statements: made };
}

function stateInWords(file: EvidenceFile, state: EvidenceState, { block, header }: CheckedBlock): string {
  const parties = (['beneficiary', 'holder', 'nominee'] as const)
    .map((role) => `${role} ${state[role] === ZeroAddress ? 'nobody' : getAddress(state[role])}`)
    .join(', ');
  const earlier = [state.previousBeneficiary, state.previousHolder]
    .map((address) => (address === ZeroAddress ? 'nobody' : getAddress(address)))
    .join(' and ');
  const place = placeOf(file, state) ?? `owned by ${state.owner}`;
  return (
    `At the end of block ${block.number} (${timeOf(header.timestamp)}) the token was ${place}: ` +
    `${parties}; a rejection would give the roles back to ${earlier}; ` +
    `the registry was ${state.isPaused ? '' : 'not '}paused.`
  );
}

/** Where a state has the token. Undefined: with an owner that the contracts never give it to. */
export function placeOf(file: EvidenceFile, { owner }: EvidenceState): TokenState['state'] | undefined {
  if (owner === contractsOf(file).titleEscrow) return 'in escrow';
  if (owner === file.registry) return 'returned to issuer';
  return owner === BURN_ADDRESS ? 'shredded' : undefined;
}

/** Checks that the title escrow is the token's, and which code the contracts run. */
export function checkContracts(
  file: EvidenceFile,
  states: readonly CheckedState[],
  events: readonly CheckedEvent[],
): Statement[] {
  const { made, proven, claimed, refuted } = createStatements('contracts');
  const { titleEscrow } = contractsOf(file);
  const escrow = `The token's title escrow is ${titleEscrow}: CREATE2 gives it for registry and token.`;
  const mint = events.find(({ type, payload }) => type === 'minted' && payload.escrowAddress === titleEscrow);
  if (mint?.isProven) proven(escrow, 'the registry minted the token to it', { given: [mint.blockHash] });
  else claimed(escrow, THE_FILE);
  const { block, proven: shown } = states.at(-1) ?? {};
  const last = file.blocks.at(-1)?.number;
  for (const contract of contractsIn(file)) {
    const runs = `The ${contract.name} ${contract.address} runs the code that TradeTrust publishes`;
    const says = `${runs}, at the end of block ${last}.`;
    if (shown && !hasSameCode(contract, shown))
      refuted(says, 'the state of the block has another code than the file');
    else if (!contract.isPublished)
      claimed(says, 'its code is not the published one: what it allows is not known here');
    else if (shown && block?.isProven)
      proven(
        says,
        'a Merkle proof leads to its hash from the hash of the block; its metadata is left out of account',
        { given: [block.block.hash] },
      );
    else
      claimed(says, `the code in the file is the published one, but is not proven to be there; ${THE_FILE}`);
  }
  // A contract could be removed, and another one made at its address, before EIP-6780.
  if (made.every(({ status }) => status === 'proven'))
    claimed(
      'The contracts ran this code at each event, too: its rules allowed what happened.',
      'the published code can neither change nor remove itself. Another code could have been there before ' +
        'only on a chain that lets contracts be replaced',
      { isMinor: true },
    );
  return made;
}

/** A contract of the token. */
interface Contract {
  name: string;
  address: string;
  /** Whether it runs what TradeTrust publishes, with the code in the file. */
  isPublished: boolean;
  /** The hashes of the code in the file: of the contract, and of the one whose code it runs. */
  codeHashes: ReadonlyMap<string, string>;
}

function contractsIn(file: EvidenceFile): Contract[] {
  const { registry, titleEscrow, titleEscrowFactory, ...implementations } = contractsOf(file);
  const { registryImplementation, titleEscrowImplementation } = implementations;
  const code = PUBLISHED_CODE;
  const contract = (name: string, address: string, implementation: string, expected: string): Contract => {
    const [own, run] = [codeIn(file, address), codeIn(file, implementation)];
    const isItOrItsClone = address === implementation || implementationOf(own) === implementation;
    const codeHashes = new Map([
      [address, keccak256(own)],
      [implementation, keccak256(run)],
    ]);
    return { name, address, isPublished: isItOrItsClone && maskedCodeHash(run) === expected, codeHashes };
  };
  return [
    contract('registry', registry, registryImplementation, code.registry),
    contract('title escrow factory', titleEscrowFactory, titleEscrowFactory, code.titleEscrowFactory),
    contract('title escrow', titleEscrow, titleEscrowImplementation, code.titleEscrow),
  ];
}

function codeIn({ codes }: EvidenceFile, address: string): string {
  return codes.find((one) => one.address === address)?.code ?? '0x';
}

/** Whether a state has the code in the file. */
function hasSameCode({ codeHashes }: Contract, { codeHashOf }: ProvenState): boolean {
  return [...codeHashes].every(([address, hash]) => codeHashOf(address) === hash);
}
