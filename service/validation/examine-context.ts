import { keyIdOf, newDidKeyPair } from '../base/did-key-pair';
import { codeOf, messageOf } from '../base/errors';
import { jsonIn } from '../did/fetched-json';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import { tokensOf } from '../issuance/select-parts';
import { createCredentialSigner } from '../issuance/sign';
import { losingFeatureOf, membersIn, type Member } from '../issuance/signed-content';
import { problemOfKey } from '../issuance/unprotected-content';
import { checkIntegrity } from '../verification/check-integrity';
import { createContextSource } from '../verification/contexts';
import { contextsOf } from '../verification/presented-credential';
import { credentialAround, loaderWith } from './json-ld-problems';

/**
 * Examines the file of a context of the issuer's own. Its terms may have only features of JSON-LD whose
 * content is signed. Then a document that uses every term is signed with a key that is thrown away, and a
 * version is derived from it and verified. If this fails, the terms are added one by one.
 *
 * @returns everything that is wrong; each ends a sentence that begins with the file, and has the JSON pointer
 *   (RFC 6901) of the place. Without any, documents with the file's terms can be issued.
 */
export async function examineContext(bytes: Uint8Array): Promise<string[]> {
  const file = jsonIn({ kind: 'bytes', url: '', contentType: '', bytes });
  if (file.kind !== 'json') return [file.problem];
  const context = isJsonObject(file.json) ? file.json['@context'] : undefined;
  const names = [context ?? {}].flat().flatMap((one) => (isJsonObject(one) ? Object.keys(one) : 'another'));
  if (names.every((name) => name.startsWith('@') && name !== '@vocab'))
    return ['has no "@context" that defines terms'];
  const members = [...membersIn({ '@context': context }, '')];
  const deep = members.find(({ at }) => at.split('/@context').length > MOST_NESTED + 1);
  if (deep) return [`${deep.at} is nested in more than ${MOST_NESTED} contexts; define fewer in one another`];
  const reasons = new Map<string, string>();
  for (const member of members) {
    const isOdd =
      DIRECTION.test(member.at) || (member.member === '@type' && /^(?!@|type$)/.test(member.name));
    const feature = isOdd ? `"${member.name}": "${String(member.member)}"` : losingFeatureOf(member);
    if (feature !== undefined) reasons.set(member.at, `has ${feature}${NOT_SIGNED}`);
  }
  const reason = await reasonAgainst(without(context, [...reasons.keys()]));
  if (reason !== undefined) {
    await addTerms(context, members, reasons);
    if (reasons.size === 0) reasons.set('/@context', reason);
  }
  return [...reasons].map(([pointer, reason]) => `${pointer} ${reason}`);
}

/** Adds the terms one by one, and the reason against each that cannot be used. */
async function addTerms(
  context: unknown,
  members: readonly Member[],
  reasons: Map<string, string>,
): Promise<void> {
  const terms = members
    .filter(({ at }) => TERM.test(at))
    .sort((one, other) => rankOf(one) - rankOf(other))
    .map(({ at }) => at);
  for (let count = 0; count <= terms.length; count++) {
    const pointer = terms[count - 1] ?? '/@context';
    const unused = terms.filter((at) => !`${pointer}/`.startsWith(`${at}/`));
    const reason = await reasonAgainst(
      without(context, [...terms.slice(count), ...reasons.keys()]),
      without(context, unused),
    );
    if (reason === undefined) continue;
    reasons.set(pointer, reason);
    if (count === 0) return;
  }
}

/** The document with all terms grows with each level as a power. */
const MOST_NESTED = 10;
const DIRECTION = /\/@context(\/\d+)?\/@direction$/;
const NOT_SIGNED = ' of JSON-LD: content may not be signed, or no version be derivable; leave it out';
const TERM = /\/@context(\/\d+)?\/(?!\d+$)[^@/][^/]*$/;

/** Terms that have others in them, or need them as prefixes, come after these. */
function rankOf({ at, member }: { at: string; member: unknown }): number {
  return at.split('/').length + (isJsonObject(member) ? 0.5 : 0);
}

/** A context without its members at these pointers. */
function without(context: unknown, pointers: readonly string[]): unknown {
  const copy = structuredClone({ '@context': context });
  for (const pointer of pointers) {
    const path = tokensOf(pointer);
    const holder = path.slice(0, -1).reduce<unknown>((at, step) => (at as JsonObject | null)?.[step], copy);
    if (isJsonObject(holder)) delete holder[path.at(-1) ?? ''];
  }
  return copy['@context'];
}

/**
 * Objects that use the terms of a context, each another one: terms with the same IRI cannot stand in one
 * object. A term with a capital letter is a type, too.
 */
function objectsWith(context: unknown, count = { values: 0 }): JsonObject[] {
  const contexts = [context].flat();
  const terms = contexts.flatMap((one) => (isJsonObject(one) ? Object.entries(one) : []));
  return terms.flatMap(([name, definition]) => {
    const { '@id': id = definition, ...others } = isJsonObject(definition) ? definition : {};
    if (problemOfKey(name) || definition === null || id === '@id' || id === '@type') return [];
    const isIri = others['@type'] === '@id' || others['@type'] === '@vocab';
    const value = `${isIri ? 'urn:example:' : ''}${count.values++}`;
    const inner = objectsWith(others['@context'], count);
    const isType = /^\p{Lu}/u.test(name) && !contexts.includes(null);
    const typed = inner.filter((object) => !('type' in object)).map((object) => ({ type: name, ...object }));
    return [{ [name]: [value, ...inner] }, ...(isType ? [{ type: name }, ...typed] : [])];
  });
}

const ISSUER = credentialAround({}, true).issuer;
const KEY = newDidKeyPair(keyIdOf(ISSUER, 1), ISSUER);

/** The reason why a document that uses these terms cannot be issued under a context. */
async function reasonAgainst(context: unknown, used = context): Promise<string | undefined> {
  const loader = loaderWith({ '@context': context });
  // A credential may have several subjects.
  const credentialSubject = objectsWith(used) as unknown as JsonObject;
  try {
    const sign = await createCredentialSigner(KEY, loader);
    const signed = await sign({ ...credentialAround({}, true), credentialSubject }, new Date(0));
    const { checks } = await checkIntegrity({
      credential: { ...signed },
      named: contextsOf(signed),
      reveal: undefined,
      trustedContexts: [],
      key: KEY,
      contexts: createContextSource(loader, async ({ href: url }) => ({ kind: 'refused', url, problem: '' })),
      now: 0,
    });
    return checks.find(({ outcome }) => outcome !== 'valid')?.found;
  } catch (thrown) {
    return reasonOf(thrown);
  }
}

/** Sentences for errors of JSON-LD about a context (https://www.w3.org/TR/json-ld11-api/#jsonlderrorcode). */
function reasonOf(thrown: unknown): string {
  const { details } = ((thrown as Error).cause ?? {}) as { details?: { code?: string; term?: string } };
  if (details?.code === 'protected term redefinition')
    return `defines "${details.term}" anew, which an earlier context protects; choose another name`;
  if (/^invalid (scoped context|IRI mapping|type mapping)$/.test(details?.code ?? ''))
    return 'needs absolute IRIs, or prefixes of the file, as "@id" and "@type", and may name no other file';
  const message = messageOf(thrown).replace(/^\/\S+ |^The credential could not be signed: |\.?\s*$/g, '');
  return codeOf(thrown) === 'CONTEXT_UNKNOWN' ? `names another file; copy its terms. ${message}` : message;
}
