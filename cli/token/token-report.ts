import { timeOf, tokenView } from '../../service/answers/token-view';
import type { TokenView } from '../../service/answers/views';
import { decryptRemark } from '../../service/issuance/remarks';
import type { TokenState } from '../../service/registry/read-token-state';
import { tokenIdHexOf } from '../../service/registry/token-id-forms';
import type { Roles } from '../../service/token/endorsement-chain';
import { possibleOperations } from '../../service/token/possible-operations';
import type { AccountWithCode, DatedEndorsement, TokenHistory } from '../../service/token/read-token-history';
import { accountNames } from '../terminal/printable';
import type { FoundToken } from './find-token';

type Name = (address: string | undefined) => string;

/** Formats the endorsement chain and the state for people. */
export function tokenLines(found: FoundToken, history: TokenHistory, network: string): string[] {
  const { location } = found;
  const head = [
    `Token ${tokenIdHexOf(location.tokenId)}`,
    `  of registry ${location.registry} on ${network} (chain id ${location.chainId})`,
    '',
  ];
  const { state, endorsements, accountsWithCode } = history;
  if (state.state === 'not minted')
    return [...head, `Not minted, at block ${state.block}${pausedNote(state)}.`];
  const names = accountNames(endorsements.flatMap(accountsOf));
  const name: Name = (address) => (address === undefined ? 'nobody' : (names.get(address) ?? address));
  const earlier = history.isWhole ? [] : ['(earlier operations were not read)'];
  const rows = endorsements.map((endorsement) => rowOf(endorsement, name, found.credentialId));
  return [
    ...head,
    ...earlier,
    ...table([['time (UTC)', 'block', 'what', 'sent by', 'transaction', 'remark'], ...rows]),
    '',
    ...notes(endorsements, name),
    ...legend(names, accountsWithCode),
    ...stateLines(state),
  ];
}

/** The same for programs. */
export function tokenJson(
  { location, credentialId }: FoundToken,
  history: TokenHistory,
  network: string,
): TokenView {
  return tokenView(location, history, { network, credentialId });
}

/** Describes the effect of an operation. */
function describe({ operation, before, after }: DatedEndorsement, name: Name): string {
  const change = (role: keyof Roles): string => `${role} ${name(before[role])} → ${name(after[role])}`;
  switch (operation) {
    case 'mint':
      return `issued: beneficiary ${name(after.beneficiary)}, holder ${name(after.holder)}`;
    case 'nominate':
      return after.nominee === undefined
        ? `nomination of ${name(before.nominee)} withdrawn`
        : `nominated ${name(after.nominee)}${before.nominee ? ` instead of ${name(before.nominee)}` : ''}`;
    case 'transferBeneficiary':
      return `transferred: ${change('beneficiary')}`;
    case 'transferHolder':
      return `transferred: ${change('holder')}`;
    case 'transferOwners':
      return `transferred: ${change('beneficiary')}, ${change('holder')}`;
    case 'rejectTransferBeneficiary':
      return `rejected, back: ${change('beneficiary')}`;
    case 'rejectTransferHolder':
      return `rejected, back: ${change('holder')}`;
    case 'rejectTransferOwners':
      return `rejected, back: ${change('beneficiary')}, ${change('holder')}`;
    case 'returnToIssuer':
      return 'returned to issuer';
    case 'restore':
      return 'restored: the issuer gave it back';
    case 'burn':
      return 'shredded: the issuer took it out of circulation';
  }
}

function rowOf(endorsement: DatedEndorsement, name: Name, credentialId: string | undefined): string[] {
  const { timestamp, blockNumber, by, sender, transactionHash, remark } = endorsement;
  return [
    timeOf(timestamp).replace('T', ' ').replace('Z', ''),
    String(blockNumber),
    describe(endorsement, name),
    by === undefined || by === sender ? name(sender) : `${name(sender)} through ${name(by)}`,
    transactionHash,
    printRemark(remark, credentialId),
  ];
}

/** Explains transactions in which code made the calls: several of them, or for another sender. */
function notes(endorsements: readonly DatedEndorsement[], name: Name): string[] {
  const several = new Map<string, number>();
  for (const { transactionHash } of endorsements)
    several.set(transactionHash, (several.get(transactionHash) ?? 0) + 1);
  const together = [...several].filter(([, operations]) => operations > 1);
  const through = new Set(endorsements.flatMap(({ by, sender }) => (by && by !== sender ? name(by) : [])));
  const lines = [
    ...together.map(([hash, operations]) => `${operations} operations are of one transaction: ${hash}`),
    ...[...through].map((account) => `"through ${account}": its code made the call, for whoever sent it`),
  ];
  return lines.length === 0 ? [] : [...lines, ''];
}

function accountsOf({ before, after, sender }: DatedEndorsement): string[] {
  const { beneficiary, holder, nominee } = before;
  const everybody = [beneficiary, holder, nominee, after.beneficiary, after.holder, after.nominee, sender];
  return everybody.flatMap((address) => address ?? []);
}

function legend(names: ReadonlyMap<string, string>, withCode: readonly AccountWithCode[]): string[] {
  const code = new Map(withCode.map(({ address, delegate }) => [address, kindOf(delegate)]));
  const shown = [...names].filter(([address, name]) => address !== name || code.has(address));
  if (shown.length === 0) return [];
  return [
    'Accounts',
    ...shown.map(([address, name]) => `  ${name}  ${address}${code.get(address) ?? ''}`),
    '',
  ];
}

function kindOf(delegate: string | undefined): string {
  return delegate === undefined ? '  a contract' : `  runs the code of ${delegate} (EIP-7702)`;
}

function stateLines(state: Exclude<TokenState, { state: 'not minted' }>): string[] {
  const person = (role: string, address: string | undefined): string[] =>
    address === undefined ? [] : [`  ${role.padEnd(21)} ${address}`];
  const next = possibleOperations(state).map(
    ({ operation, by, whom }) => `  ${operation}${whom ? ` (${whom})` : ''} by ${by}`,
  );
  return [
    `Now (block ${state.block}): ${state.state}${pausedNote(state)}`,
    ...person('title escrow', state.titleEscrow),
    ...person('beneficiary', state.beneficiary),
    ...person('holder', state.holder),
    ...person('nominee', state.nominee),
    ...person('previous beneficiary', state.previousBeneficiary),
    ...person('previous holder', state.previousHolder),
    '',
    ...(next.length === 0
      ? ['No operation is possible any more.']
      : ['Possible next operations (docs/holders.md lists the tools)', ...next]),
  ];
}

function pausedNote({ isPaused }: TokenState): string {
  return isPaused ? '; the registry is paused' : '';
}

/** Aligns columns to their widest cell. */
function table(rows: readonly string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/**
 * Formats a remark for people: its text, with a note unless it was encrypted under the credential's id, or
 * its bytes in hex if it cannot be read. Empty if there is no remark.
 */
export function printRemark(remark: string, credentialId: string | undefined): string {
  const decrypted = decryptRemark(remark, credentialId);
  switch (decrypted.kind) {
    case 'none':
      return '';
    case 'text':
      return quoted(decrypted.text);
    case 'plain text':
      return `${quoted(decrypted.text)} (plain text)`;
    case 'default key':
      return `${quoted(decrypted.text)} (under the default key of TrustVC)`;
    case 'undecipherable':
      return credentialId === undefined ? remark : `${remark} (cannot be decrypted with this credential)`;
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}
