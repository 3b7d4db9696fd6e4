import type { Devnet } from './devnet';

/** A step of the walk and the events that it emits, in order. */
export interface Step {
  title: string;
  run: () => Promise<unknown>;
  events: readonly string[];
}

const SECOND_HOLDER = 2;
const NOMINEE = 3;

/** Events of a mint, in order. */
export const MINT_EVENTS = [
  'escrow_created',
  'minted',
  'beneficiary_transfer',
  'holder_transfer',
  'token_received',
] as const;

/** The steps that a new token of account 1 goes through. */
export function stepsFor(devnet: Devnet, tokenId: string): Step[] {
  return [
    {
      title: 'the holder hands the document to account 2',
      run: () => devnet.transferHolder(tokenId, { to: SECOND_HOLDER }),
      events: ['holder_transfer'],
    },
    {
      title: 'the beneficiary nominates account 3',
      run: () => devnet.nominate(tokenId, { to: NOMINEE }),
      events: ['nomination'],
    },
    {
      title: 'the holder makes the nominee the beneficiary',
      run: () => devnet.transferBeneficiary(tokenId, { to: NOMINEE }),
      events: ['beneficiary_transfer', 'nomination'],
    },
  ];
}
