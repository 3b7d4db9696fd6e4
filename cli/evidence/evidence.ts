import { resolve } from 'node:path';
import { cut } from '../../service/base/errors';
import { registryName } from '../../service/base/registry-name';
import { jwksOf } from '../../service/base/signing-keys';
import type { Time } from '../../service/base/time';
import {
  check,
  collectFrom,
  evidencePage,
  type EvidenceFile,
  type EvidenceReport,
} from '../../evidence/evidence';
import { TOPICS, type Statement, type Status } from '../../evidence/statements';
import { listEvents } from '../../service/outbox/deliveries';
import { parseTokenId } from '../../service/registry/token-id-forms';
import type { TokenLocation } from '../../service/token/token-location';
import { credentialIn } from '../../service/verification/presented-credential';
import type { Answer } from '../answer';
import { knownContexts } from '../credentials/sources';
import { withDatabase } from '../database/with-database';
import { invalid } from '../errors';
import { readJsonInput } from '../files/user-file';
import { PUBLIC_MODE, SECRET_MODE, writeFileAtomically } from '../files/write-file';
import { findToken, withRegistry } from '../token/find-token';

/** The options of `tdoc evidence`. */
export interface CollectOptions {
  registry?: string;
  network?: string;
  stateAt?: number[];
  deliveries?: true;
  out?: string;
  html?: string;
}

/** The options of `tdoc check-evidence`. */
export interface CheckOptions {
  rpcUrl?: string[];
  html?: string;
  all?: true;
}

/**
 * Collects the evidence of a token into a file, and a page for readers. A file that has a document is
 * readable by its owner only.
 */
export async function collectIntoFile(time: Time, token: string, options: CollectOptions): Promise<Answer> {
  const { stateAt, out = 'evidence.json', html, deliveries } = options;
  const { location } = await findToken({ token, ...options });
  const credential = parseTokenId(token) === undefined ? credentialIn(await readJsonInput(token)) : undefined;
  const given = { credential, knownContexts: knownContexts(), ...(stateAt && { stateAt }) };
  const collected = await withRegistry(time, location, (reached) =>
    collectFrom(reached, location.tokenId, given),
  );
  const file = deliveries ? { ...collected, deliveries: await deliveriesOf(location) } : collected;
  const mode = credential === undefined ? PUBLIC_MODE : SECRET_MODE;
  writeFileAtomically(resolve(out), `${JSON.stringify(file)}\n`, mode);
  const { report } = await check(file);
  if (html !== undefined) writeFileAtomically(resolve(html), evidencePage(file, report), mode);
  const written = [out, ...(html === undefined ? [] : [html])].map((path) => `written to ${resolve(path)}`);
  return {
    lines: [...reportLines(report, false), ...written],
    json: { file: resolve(out), html: html === undefined ? null : resolve(html), outcome: report.outcome },
    isYes: report.outcome !== 'invalid',
  };
}

/**
 * @returns the events' deliveries as the service's database has them, and the ids of the keys that sign
 * now.
 */
async function deliveriesOf({
  chainId,
  registry,
  tokenId,
}: TokenLocation): Promise<EvidenceFile['deliveries']> {
  return withDatabase(async ({ db }, { signingKeys }) => {
    const wanted = { registry: registryName(chainId, registry), tokenId: tokenId.toString() };
    const { events } = await listEvents(db, wanted);
    const deliveries = events.flatMap(({ eventId, type, body, deliveries: sent }) => {
      const { data } = JSON.parse(body) as { data: { transactionHash?: string } };
      if (data.transactionHash === undefined) return [];
      const { transactionHash } = data;
      return sent.map(({ subscription, state, attempts }) => ({
        ...{ eventId, type, transactionHash, subscription, state },
        attempts: attempts.map(({ attemptedAt, status }) => ({
          at: new Date(attemptedAt).toISOString(),
          status,
        })),
      }));
    });
    return { signingKeyIds: signingKeys ? jwksOf(signingKeys).keys.map(({ kid }) => kid) : [], deliveries };
  });
}

/** Checks an evidence file, without a network unless nodes are named. */
export async function checkFile(path: string, { rpcUrl = [], html, all }: CheckOptions): Promise<Answer> {
  const odd = rpcUrl.find((url) => !/^(https?|wss?):/.test(url) || !URL.canParse(url));
  if (odd !== undefined) throw invalid('--rpc-url: one of the values is not a URL of a node.');
  const { file, report } = await check(await readJsonInput(path), { rpcUrls: rpcUrl });
  if (html !== undefined) writeFileAtomically(resolve(html), evidencePage(file, report), SECRET_MODE);
  const isYes = { valid: true, invalid: false, 'could not tell': undefined }[report.outcome];
  return { lines: reportLines(report, all ?? false), json: report, isYes };
}

const IN_WORDS: Record<EvidenceReport['outcome'], string> = {
  valid: 'VALID: a node confirmed the hashes, and everything that can be proven with them is.',
  invalid: 'INVALID: at least one statement is refuted.',
  'could not tell': 'COULD NOT TELL: nothing is refuted, but something that must be shown is only claimed.',
};

const LONGEST = 400;

/** @param isAll whether each statement is listed, also of topics with many. */
function reportLines({ condition, given, statements, outcome }: EvidenceReport, isAll: boolean): string[] {
  const hashes = given
    .filter(({ status }, index) => isAll || index === 0 || status === 'refuted')
    .map(({ number, hash, time, status, because }) =>
      lineOf(status, `block ${number} ${hash} ${time}`, because),
    );
  return [
    condition,
    ...hashes,
    ...(hashes.length < given.length ? [`  … ${given.length} blocks in all (--all)`] : []),
    ...TOPICS.flatMap((topic) =>
      topicLines(
        topic,
        statements.filter((one) => one.topic === topic),
        isAll,
      ),
    ),
    IN_WORDS[outcome],
  ];
}

const LONG_TOPIC = 6;

function topicLines(topic: string, statements: readonly Statement[], isAll: boolean): string[] {
  if (statements.length === 0) return [];
  const isLong = statements.length > LONG_TOPIC && !isAll;
  const unproven = statements.filter(({ status }) => status !== 'proven');
  const shown = isLong
    ? unproven.filter(({ status, isMinor }, index) => status === 'refuted' || !isMinor || index < LONG_TOPIC)
    : statements;
  const hidden = isLong ? unproven.length - shown.length : 0;
  const proven = statements.filter(({ status }) => status === 'proven').length;
  return [
    `${topic}: ${proven} of ${statements.length} PROVEN${isLong ? ' (--all lists them)' : ''}`,
    ...shown.map(({ status, says, because }) => lineOf(status, says, because)),
    ...(hidden > 0 ? [`  … ${hidden} more are CLAIMED (--all)`] : []),
  ];
}

function lineOf(status: Status, says: string, because: string): string {
  return `  ${status.toUpperCase().padEnd(8)} ${cut(`${says} [${because}]`, LONGEST)}`;
}
