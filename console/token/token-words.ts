import type { KnownToken } from '../../service/answers/views';

type Endorsement = KnownToken['endorsements'][number];
type Next = KnownToken['next'][number];

/** Each operation that happened, in words. */
export const OPERATION_TITLES: Readonly<Record<Endorsement['operation'], string>> = {
  mint: 'Minted',
  nominate: 'Nomination',
  transferBeneficiary: 'Beneficiary transferred',
  transferHolder: 'Holder transferred',
  transferOwners: 'Beneficiary and holder transferred',
  rejectTransferBeneficiary: 'Transfer of the beneficiary rejected',
  rejectTransferHolder: 'Transfer of the holder rejected',
  rejectTransferOwners: 'Transfer of both roles rejected',
  returnToIssuer: 'Returned to the issuer',
  restore: 'Restored',
  burn: 'Shredded',
};

const ACTIONS: Readonly<Record<Next['operation'], string>> = {
  mint: 'mint the token',
  nominate: 'nominate the next beneficiary: WHOM',
  transferBeneficiary: 'transfer the beneficiary to WHOM',
  transferHolder: 'transfer the holder to WHOM',
  transferOwners: 'transfer both roles (WHOM)',
  rejectTransferBeneficiary: 'reject the transfer of the beneficiary, WHOM',
  rejectTransferHolder: 'reject the transfer of the holder, WHOM',
  rejectTransferOwners: 'reject the transfer of both roles, WHOM',
  returnToIssuer: 'return the token to the issuer',
  restore: 'restore the token to its title escrow',
  burn: 'shred the token',
  unpause: 'unpause the registry',
};

/** A part of a sentence: words, or an address to be shown with its name. */
export type SentencePart = { words: string } | { address: string };

/** An operation that is possible next, in words. */
export function sentenceOf({ operation, by, whom = '' }: Next): SentencePart[] {
  const isAddress = by.startsWith('0x');
  const subject: SentencePart = isAddress ? { address: by } : { words: `An account with the role ${by}` };
  return [subject, ...partsOf(` may ${ACTIONS[operation].replace('WHOM', whom)}.`)];
}

function partsOf(text: string): SentencePart[] {
  return text
    .split(/(0x[0-9a-fA-F]{40})/)
    .flatMap((part, index) => (part === '' ? [] : [index % 2 === 1 ? { address: part } : { words: part }]));
}

/** The roles that an operation changed. */
export function changesOf({ before, after }: Pick<Endorsement, 'before' | 'after'>) {
  return (['beneficiary', 'holder', 'nominee'] as const)
    .filter((role) => before[role] !== after[role])
    .map((role) => ({ role, before: before[role], after: after[role] }));
}

/** A page of the network's explorer, if there is one. Only web addresses become links. */
export function explorerLink(
  explorerUrl: string | null,
  kind: 'address' | 'tx',
  value: string,
): string | undefined {
  if (explorerUrl === null || !/^https?:\/\//.test(explorerUrl)) return undefined;
  return `${explorerUrl.replace(/\/$/, '')}/${kind}/${encodeURIComponent(value)}`;
}
