import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getAddress } from 'ethers';
import { PROJECT_ROOT } from '../service/base/project-root';
import { NETWORKS } from '../service/chain/networks';
import { decryptRemark } from '../service/issuance/remarks';
import type { TokenOperation, Roles } from '../service/token/endorsement-chain';
import { timeOf } from './check-chain';
import type { EvidenceReport } from './check-evidence';
import type { CheckedOperation } from './check-history';
import type { EvidenceFile } from '../service/evidence/evidence-file';
import type { Statement, Status } from './statements';

/** Escapes text for HTML. Much of it was written by strangers. */
function html(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  const plain = text.replace(/\s/g, ' ').replace(CONTROL, '\u{fffd}');
  return plain.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Characters that could make a line read as another: controls, and marks of the direction of writing. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}]/gu;

const WHAT_HAPPENED: Record<TokenOperation, string> = {
  mint: 'The issuer issued the document',
  nominate: 'The beneficiary named who may become the next one',
  transferBeneficiary: 'Another party became beneficiary',
  transferHolder: 'The document passed to another holder',
  transferOwners: 'The document passed to another holder, and another party became beneficiary',
  rejectTransferBeneficiary: 'The new beneficiary refused: the role went back',
  rejectTransferHolder: 'The new holder refused: the document went back',
  rejectTransferOwners: 'The new holder and beneficiary refused: both roles went back',
  returnToIssuer: 'The document was returned to the issuer',
  restore: 'The issuer gave the document back to its holder',
  burn: 'The issuer took the document out of circulation for good',
};

type Name = (address: string | undefined) => string;

const ROLES = ['holder', 'beneficiary', 'nominee'] as const;

/** The parties by their addresses, in the order in which they appear, with what they appear as. */
function rolesOf(operations: readonly CheckedOperation[]): Map<string, Set<string>> {
  const parties = new Map<string, Set<string>>();
  const add = (party: string | undefined, role: string): void => {
    if (party === undefined) return;
    const address = getAddress(party);
    parties.set(address, (parties.get(address) ?? new Set()).add(role));
  };
  for (const { operation, after, sender } of operations) {
    for (const role of ROLES) add(after[role], role);
    add(sender, ISSUERS.has(operation) ? "issuer's account" : 'signer');
  }
  return parties;
}

/** Operations of the registry's roles, which the issuer has. */
const ISSUERS = new Set<TokenOperation>(['mint', 'restore', 'burn']);

function letters(index: number): string {
  const last = String.fromCharCode(65 + (index % 26));
  return index < 26 ? last : `${letters(Math.floor(index / 26) - 1)}${last}`;
}

/**
 * One printable page about a file and its check, without scripts and without anything that a browser would
 * have to fetch. It is for readers who know the law of documents and nothing of chains. Its words, and where
 * each part is, are in evidence-page.html.
 */
export function evidencePage(file: EvidenceFile, report: EvidenceReport): string {
  const parties = rolesOf(report.operations);
  const names = new Map(
    [...parties.keys()].map((address, index) => [address.toLowerCase(), `Party ${letters(index)}`]),
  );
  const name: Name = (address) =>
    address === undefined ? 'nobody' : (names.get(address.toLowerCase()) ?? address);
  const parts: Record<string, string> = {
    title: html(file.tokenId.slice(0, 12)),
    condition: html(report.condition),
    warning: warningOf(report),
    about: aboutOf(file),
    parties: partiesOf(parties, name),
    control: controlOf(file, report, name),
    states: statesOf(report, name),
    blockCount: String(report.given.length),
    documentQuestion: QUESTIONS[file.credential ? 'document' : 'token'],
    words: wordsSection(file),
    statements: statementsOf(report),
    blocks: blocksOf(report),
    software: html(file.software),
    ...{ proven: mark('proven'), claimed: mark('claimed'), refuted: mark('refuted') },
  };
  const page = readFileSync(join(PROJECT_ROOT, 'evidence/evidence-page.html'), 'utf8');
  return page.replace(/\{\{(\w+)\}\}/g, (_, part: string) => parts[part] ?? '');
}

/** The questions that a reader must ask about the document. */
const QUESTIONS = {
  document:
    'Was the domain of the issuer in the hands of the named carrier when its DID document was fetched?',
  token:
    'What does the document say? The collector did not have it. The SHA-256 of its id must be the token.',
};

function mark(status: Status): string {
  return `<span class="${status}">${status.toUpperCase()}</span>`;
}

function warningOf({ statements, given }: EvidenceReport): string {
  const refuted = [...statements, ...given].filter(({ status }) => status === 'refuted').length;
  if (refuted === 0) return '';
  return `<p>${mark('refuted')}: ${refuted} of the statements below. Do not rely on the file before
somebody has explained them.</p>`;
}

function aboutOf(file: EvidenceFile): string {
  // The file could name another network than that of its chain id.
  const network =
    NETWORKS.find(({ chainId }) => chainId === file.chainId)?.name ?? 'a network not known here';
  const rows = [
    ['Token', file.tokenId],
    ['Registry', getAddress(file.registry)],
    ['Chain', `${network} (chain id ${file.chainId})`],
  ].map((row) => row.map(html));
  const collected = html(`${file.collectedAt} by ${file.software}; the file says so`);
  return rawTable(['', ''], [...rows, ['Collected', `${mark('claimed')} ${collected}`]]);
}

function wordsSection({ credential }: EvidenceFile): string {
  if (credential === undefined)
    return '<h2>The document</h2><p>It is not in the file: only its token is.</p>';
  return `<h2>In the words of the document</h2>${table(['', ''], wordsOf(credential.credential))}`;
}

const MOST_WORDS = 60;

/** The members of a credential that are plain text, with their paths. */
function wordsOf(credential: Readonly<Record<string, unknown>>): [string, string][] {
  const { issuer, validFrom, validUntil, credentialSubject } = credential;
  const rows: [string, string][] = [];
  const add = (path: string, value: unknown): void => {
    if (rows.length >= MOST_WORDS) return;
    if (Array.isArray(value)) value.forEach((one, index) => add(`${path} ${index + 1}`, one));
    else if (typeof value === 'object' && value !== null)
      for (const [key, one] of Object.entries(value)) add(`${path} ${key}`, one);
    else if (['string', 'number', 'boolean'].includes(typeof value))
      rows.push([path.trim(), `${value as string}`]);
  };
  for (const [path, value] of Object.entries({ issuer, validFrom, validUntil })) add(path, value);
  add('', credentialSubject);
  return rows;
}

function partiesOf(parties: ReadonlyMap<string, ReadonlySet<string>>, name: Name): string {
  const rows = [...parties].map(([address, roles]) => [name(address), address, [...roles].join(', ')]);
  return table(['Called here', 'Address', 'Appears as'], rows);
}

/** Longer pictures cannot be read: the table has everything. */
const MOST_PICTURED = 40;

function controlOf(
  { credential }: EvidenceFile,
  { operations, statements, given }: EvidenceReport,
  name: Name,
): string {
  if (operations.length === 0) return '<p>The events are not one chain from the issue: see below.</p>';
  const id = typeof credential?.credential.id === 'string' ? credential.credential.id : undefined;
  const end = `the last block examined, ${moment(given.at(-1)?.time ?? '')}`;
  const rows = operations.map((one, index): string[] => {
    const { operation, timestamp, after, sender, remark, isProven } = one;
    const next = operations[index + 1];
    const read = decryptRemark(remark, id);
    const named = operation === 'nominate' ? `: ${name(after.nominee)}` : '';
    return [
      moment(timeOf(timestamp)),
      next ? moment(timeOf(next.timestamp)) : end,
      html(`${WHAT_HAPPENED[operation]}${named}${sender ? `; signed by ${name(sender)}` : ''}`),
      ...holders(operation, after, name).map(html),
      html('text' in read ? `“${read.text}”` : read.kind === 'none' ? '' : 'encrypted'),
      mark(isProven ? 'proven' : 'claimed'),
    ];
  });
  const nothingElse = statements.find(({ says }) => says.startsWith('Nothing else happened'));
  const head = ['From (UTC)', 'Until (UTC)', 'What happened', 'Holder then', 'Beneficiary then', 'Remark'];
  return `<p>Find the row whose times enclose the day in question: it names who held the document then. The
last column says whether the event that began the row is ${mark('proven')} or ${mark('claimed')}. That nothing
else happened until the next row is ${mark(nothingElse?.status ?? 'claimed')}: each event begins where the
one before it ended, but two transfers that take each other back would leave no gap.</p>
${operations.length <= MOST_PICTURED ? picture(operations, name) : ''}
${rawTable([...head, 'That it happened'], rows)}`;
}

/** A time that breaks between day and hour only. */
function moment(time: string): string {
  const [day = '', hour = ''] = time.replace('Z', '').split('T');
  return `<span class="day">${html(day)}</span> ${html(hour)}`;
}

function holders(operation: TokenOperation, after: Roles, name: Name): [string, string] {
  if (operation === 'burn') return ['nobody: out of circulation', 'nobody'];
  const isReturned = operation === 'returnToIssuer';
  const suffix = isReturned ? ' (returned: cannot act)' : '';
  return [`${name(after.holder)}${suffix}`, `${name(after.beneficiary)}${suffix}`];
}

const STEP = 44;
const LANE = 26;
const LEFT = 90;
const TOP = 30;

/** A lane for each party: a full bar where it is the holder, an outlined one where it is the beneficiary. */
function picture(operations: readonly CheckedOperation[], name: Name): string {
  const parties = [...new Set(operations.flatMap(({ after }) => [after.holder, after.beneficiary]))].filter(
    (one) => one !== undefined,
  );
  const width = LEFT + operations.length * STEP + 10;
  const height = TOP + parties.length * LANE + 20;
  const lanes = parties.map((party, lane) => {
    const y = TOP + lane * LANE;
    const bars = operations.map(({ after }, index) => {
      const x = LEFT + index * STEP;
      const holder =
        after.holder === party ? `<rect x="${x}" y="${y}" width="${STEP}" height="9" fill="#245"/>` : '';
      const box = `x="${x}" y="${y + 11}" width="${STEP}" height="7" fill="#fff" stroke="#245"`;
      return `${holder}${after.beneficiary === party ? `<rect ${box}/>` : ''}`;
    });
    return `<text x="2" y="${y + 13}">${html(name(party))}</text>${bars.join('')}`;
  });
  const ticks = operations.map(({ timestamp }, index) => {
    const x = LEFT + index * STEP;
    const [day = '', time = ''] = timeOf(timestamp).split('T');
    return `<line x1="${x}" y1="${TOP - 6}" x2="${x}" y2="${height - 18}" stroke="#ccc"/>
<text x="${x + 2}" y="${TOP - 16}" class="tick">${html(day.slice(2))}</text>
<text x="${x + 2}" y="${TOP - 8}" class="tick">${html(time.slice(0, 5))}</text>`;
  });
  return `<figure><svg viewBox="0 0 ${width} ${height}" style="width: 100%; max-width: ${width * 1.5}px"
role="img" aria-label="Holder and beneficiary after each event">${ticks.join('')}${lanes.join('')}</svg>
<figcaption>One step for each event. Full bar: holder. Outlined bar: beneficiary.</figcaption>
</figure>`;
}

const ADDRESS = /0x[0-9a-fA-F]{40}\b/g;

function statesOf({ statements }: EvidenceReport, name: Name): string {
  const rows = statements.filter(({ topic }) => topic === 'state').map(rowOf);
  const named = rows.map((row) => row.map((cell) => cell.replace(ADDRESS, name)));
  return rawTable(['', 'Statement', 'Why'], named);
}

function rowOf({ status, says, because }: Statement): string[] {
  return [mark(status), html(says), html(because)];
}

function statementsOf({ statements }: EvidenceReport): string {
  const refuted = statements.filter(({ status }) => status === 'refuted');
  const others = statements.filter(({ status, topic }) => status !== 'refuted' && topic !== 'state');
  return rawTable(['', 'Statement', 'Why'], [...refuted, ...others].map(rowOf));
}

function blocksOf({ given }: EvidenceReport): string {
  const rows = given.map(({ number, hash, time, status, because }) => [
    ...[String(number), hash, time].map(html),
    `${mark(status)} ${html(because)}`,
  ]);
  return rawTable(['Block', 'Hash', 'Time (UTC)', 'That it is of the chain'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return rawTable(
    head.map(html),
    rows.map((row) => row.map(html)),
  );
}

/** @param rows cells that are HTML already. */
function rawTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((one) => `<${tag}>${one}</${tag}>`).join('')}</tr>`;
  const first = head.some((one) => one !== '') ? `<thead>${cells('th', head)}</thead>` : '';
  return `<table>${first}<tbody>${rows.map((row) => cells('td', row)).join('')}</tbody></table>`;
}
