import { getAddress } from 'ethers';
import { decryptRemark } from '../issuance/remarks';
import type { TokenOperation, Roles } from '../token/endorsement-chain';
import { timeOf } from './check-chain';
import type { EvidenceReport } from './check-evidence';
import type { CheckedOperation } from './check-history';
import type { EvidenceFile } from './evidence-file';
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
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '').replace(CONTROL, '\u{fffd}');
}

/** Characters that could make a line read as another: controls, and marks of the direction of writing. */
const CONTROL = /[\p{Cc}\p{Bidi_Control}]/gu;

const WHAT_HAPPENED: Record<TokenOperation, string> = {
  mint: 'The issuer issued the document',
  nominate: 'The beneficiary named who may be the next one, or withdrew a name',
  transferBeneficiary: 'The rights to the goods passed to another beneficiary',
  transferHolder: 'The document passed to another holder',
  transferOwners: 'The document and the rights to the goods passed on',
  rejectTransferBeneficiary: 'The new beneficiary refused: the rights went back',
  rejectTransferHolder: 'The new holder refused: the document went back',
  rejectTransferOwners: 'The new holder and beneficiary refused: both went back',
  returnToIssuer: 'The document was returned to the issuer',
  restore: 'The issuer gave the document back to its holder',
  burn: 'The issuer took the document out of circulation for good',
};

type Name = (address: string | undefined) => string;

/** Letters for the parties, in the order in which they appear. */
function namesOf(operations: readonly CheckedOperation[]): Map<string, string> {
  const parties = operations.flatMap(({ after, sender }) => [
    after.holder,
    after.beneficiary,
    after.nominee,
    sender,
  ]);
  const distinct = [...new Set(parties.flatMap((one) => (one ? [getAddress(one)] : [])))];
  return new Map(distinct.map((address, index) => [address, letters(index)]));
}

function letters(index: number): string {
  const last = String.fromCharCode(65 + (index % 26));
  return index < 26 ? last : `${letters(Math.floor(index / 26) - 1)}${last}`;
}

/**
 * One printable page about a file and its check, without scripts and without anything that a browser would
 * have to fetch. It is for readers who know the law of documents and nothing of chains.
 */
export function evidencePage(file: EvidenceFile, report: EvidenceReport): string {
  const names = namesOf(report.operations);
  const name: Name = (address) =>
    address === undefined ? 'nobody' : `Party ${names.get(getAddress(address)) ?? '?'}`;
  const sections = [
    conditionOf(report),
    aboutOf(file),
    partiesOf(names),
    controlOf(file, report, name),
    statesOf(report),
    questions(file, report),
    wordsSection(file),
    statementsOf(report),
    blocksOf(report),
    againOf(file),
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Evidence of document ${html(file.tokenId.slice(0, 12))}…</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Who held the document, and when</h1>
${sections.join('\n')}
</body>
</html>
`;
}

const STYLE = `
body { font: 15px/1.5 Georgia, serif; color: #111; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2em; border-bottom: 1px solid #999; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th, td { text-align: left;
vertical-align: top;
border-bottom: 1px solid #ccc; padding: .3em .5em; overflow-wrap: anywhere; }
code, .mono { font-family: monospace; font-size: 12px; overflow-wrap: anywhere; }
.condition { border: 2px solid #111; padding: .8em 1em; font-size: 16px; }

.proven, .claimed, .refuted { white-space: nowrap; }
.proven { color: #05532b; font-weight: bold; }
.claimed { color: #6b4a00; font-weight: bold; }
.refuted { color: #a00000; font-weight: bold; text-decoration: underline; }
svg text { font: 11px sans-serif; } svg .tick { font-size: 7px; }
figure { margin: 1em 0; } tr { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } }
`;

function mark(status: Status): string {
  return `<span class="${status}">${status.toUpperCase()}</span>`;
}

function conditionOf({ condition, statements, given }: EvidenceReport): string {
  const count = (status: Status): number =>
    [...statements, ...given].filter((one) => one.status === status).length;
  const refuted = count('refuted');
  const warning =
    refuted === 0
      ? ''
      : `<p><span class="refuted">${refuted} statements are REFUTED.</span> They are listed below.
Do not rely on
this file before somebody has explained them.</p>`;
  return `<p class="condition">${html(condition)}</p>${warning}
<p>${mark('proven')} means that it follows by computation from these hashes, or from arithmetic alone.
${mark('claimed')} means that somebody says so, who is named. ${mark('refuted')} means that it is
contradicted.</p>`;
}

function aboutOf(file: EvidenceFile): string {
  const rows: [string, string][] = [
    ['Token', file.tokenId],
    ['Registry', getAddress(file.registry)],
    ['Chain', `${file.network} (chain id ${file.chainId})`],
    ['Collected', `${file.collectedAt} by ${file.software}`],
  ];
  return `<h2>What this is about</h2>${table(['', ''], rows)}`;
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

function partiesOf(names: ReadonlyMap<string, string>): string {
  const rows = [...names].map(([address, letter]): [string, string] => [`Party ${letter}`, address]);
  return `<h2>The parties</h2>
<p>The chain knows addresses, not persons. Whoever has the private key of an address acts for it.
Which person that
was, nothing in this file shows.</p>${table(['Called here', 'Address'], rows)}`;
}

/** Longer pictures cannot be read: the table has everything. */
const MOST_PICTURED = 40;

function controlOf(
  { credential }: EvidenceFile,
  { operations, statements }: EvidenceReport,
  name: Name,
): string {
  if (operations.length === 0)
    return '<h2>Control over time</h2><p>The events are not one chain from the issue: see below.</p>';
  const id = typeof credential?.credential.id === 'string' ? credential.credential.id : undefined;
  const rows = operations.map((one, index): string[] => {
    const { operation, timestamp, after, sender, remark, isProven } = one;
    const next = operations[index + 1];
    const read = decryptRemark(remark, id);
    return [
      html(readable(timestamp)),
      html(next ? readable(next.timestamp) : 'the last block examined'),
      html(`${WHAT_HAPPENED[operation]}${sender ? `; signed by ${name(sender)}` : ''}`),
      html(holders(operation, after, name)[0]),
      html(holders(operation, after, name)[1]),
      html('text' in read ? `“${read.text}”` : read.kind === 'none' ? '' : 'encrypted'),
      mark(isProven ? 'proven' : 'claimed'),
    ];
  });
  const last = statements.find(({ says }) => says.startsWith('Nothing else happened'));
  const head = [
    'From (UTC)',
    'Until (UTC)',
    'What happened',
    'Holder then',
    'Beneficiary then',
    'Remark',
    'The event',
  ];
  return `<h2>Control over time</h2>
<p>Find the row whose times enclose the day in question: it names who held the document then. That
the event which began
the row happened is ${mark('proven')} or ${mark('claimed')} as the last column says. That nothing
else happened until the
next row is ${mark(last?.status ?? 'claimed')}: the chain of events has no gap, but operations that
take each other back
would leave none.</p>
${operations.length <= MOST_PICTURED ? picture(operations, name) : ''}
${rawTable(head, rows)}`;
}

/** A time that breaks between day and hour. */
function readable(seconds: number): string {
  return timeOf(seconds).replace('T', ' ').replace('Z', '');
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
  return `<figure><svg viewBox="0 0 ${width} ${height}" width="100%" role="img"
aria-label="Holder and beneficiary after each event">${ticks.join('')}${lanes.join('')}</svg>
<figcaption>One step for each event. Full bar: holder. Outlined bar: beneficiary.</figcaption>
</figure>`;
}

function statesOf({ statements }: EvidenceReport): string {
  const rows = statements.filter(({ topic }) => topic === 'state').map(rowOf);
  return `<h2>Who controlled it at the end of certain blocks</h2>
<p>These are no events, but the contracts' own memory at that moment. If PROVEN, it is certain
(given the hash) who could
act then, whatever happened before.</p>${rawTable(['', 'Statement', 'Why'], rows)}`;
}

function questions({ credential }: EvidenceFile, { given }: EvidenceReport): string {
  const asked = [
    `Are the ${given.length} block hashes listed below those of the chain? Ask two operators of
nodes who do not know
each other, or an archive of the time. Without this, everything here may be about an invented chain.`,
    'Which person had the private key of each address at the time? Was it stolen, or shared?',
    'Did anything else happen between the events listed? Ask a node for all logs of the title escrow.',
    credential
      ? 'Was the domain of the issuer in the hands of the named carrier when its DID document was fetched?'
      : 'What does the document say? The collector did not have it. The SHA-256 of its id must be the token.',
    'Which law applies, and does it recognise such a record? This page says nothing about that.',
  ];
  return `<h2>What you must still ask</h2><ul>${asked.map((one) => `<li>${html(one)}</li>`).join('')}</ul>`;
}

function rowOf({ status, says, because }: Statement): string[] {
  return [mark(status), html(says), html(because)];
}

function statementsOf({ statements }: EvidenceReport): string {
  const refuted = statements.filter(({ status }) => status === 'refuted');
  const others = statements.filter(({ status, topic }) => status !== 'refuted' && topic !== 'state');
  return `<h2>Every statement</h2>${rawTable(['', 'Statement', 'Why'], [...refuted, ...others].map(rowOf))}`;
}

function blocksOf({ given }: EvidenceReport): string {
  const rows = given.map(({ number, hash, time, status, because }) => [
    ...[String(number), hash, time].map(html),
    `${mark(status)} ${html(because)}`,
  ]);
  return `<h2>The block hashes that everything is proven with</h2>
${rawTable(['Block', 'Hash', 'Time (UTC)', 'That it is of the chain'], rows)}`;
}

function againOf({ software }: EvidenceFile): string {
  return `<h2>How to check it again</h2>
<p>This page is a reading of a file, evidence.json, which has the proofs. Ask for that file, and do
not rely on this page
without it. On any computer with Node.js, and without a network for the first command:</p>
<p><code>npx tdoc check-evidence evidence.json</code><br>
<code>npx tdoc check-evidence evidence.json --rpc-url https://a-node-that-you-trust</code></p>
<p>The second asks a node for the block hashes and for nothing else: it does not learn which
document it is about.
The file was made by ${html(software)}. Its format, and how each statement is proven, is described
in docs/evidence.md of
that program; any Ethereum library can follow it.</p>`;
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
