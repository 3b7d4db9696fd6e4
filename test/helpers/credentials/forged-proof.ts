import * as primitives from '@digitalbazaar/di-sd-primitives';
import * as encoding from '../../../node_modules/@digitalbazaar/ecdsa-sd-2023-cryptosuite/lib/proofValue.js';
import type { SignedCredential } from '../../../service/issuance/sign';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { withoutProof, type CredentialJson } from './statements';

/** Normalises a statement to its UTF-8, which is signed. */
const asSigned = (statement: string): string => Buffer.from(statement).toString();

/**
 * Forges the proof of `wanted`, like an attacker who has a derived credential. The labels of blank nodes and
 * the order of the signatures are not signed: they are chosen so that every statement is one that was signed.
 * Undefined if there is no such choice. With `mayRepeat`, two blank nodes may have the same label.
 */
export async function forgeProof(
  derived: SignedCredential,
  wanted: CredentialJson,
  mayRepeat: boolean,
): Promise<SignedCredential | undefined> {
  const documentLoader = createDocumentLoader(derived['@context'].at(-1) ?? '');
  const proof = encoding.parseDisclosureProofValue({ proof: derived.proof });
  const signed = await signedStatements(derived, proof, { documentLoader });
  const canonicalIdMap: primitives.LabelMap = new Map();
  const canonical = await primitives
    .canonicalize(withoutProof(wanted), { documentLoader, canonicalIdMap })
    .catch(() => undefined);
  if (canonical === undefined) return undefined;
  const statements = canonical.split('\n').slice(0, -1);
  const nodes = [...primitives.stripBlankNodePrefixes(canonicalIdMap).values()];
  const labelMap = findLabels(statements, nodes, [...new Set(proof.labelMap.values())], signed, mayRepeat);
  if (!labelMap) return undefined;
  const parts = choose(statements.map((statement) => `${relabel(statement, labelMap)}\n`).sort(), signed);
  if (!parts) return undefined;
  const proofValue = encoding.serializeDisclosureProofValue({ ...proof, labelMap, ...parts });
  return { ...wanted, proof: { ...derived.proof, proofValue } } as SignedCredential;
}

/** The signed statements of the derived credential, each with its signature or 'mandatory'. */
async function signedStatements(
  derived: SignedCredential,
  { labelMap, mandatoryIndexes, signatures }: encoding.DisclosureProof,
  options: object,
): Promise<Map<string, Uint8Array | 'mandatory'>> {
  const labelMapFactoryFunction = await primitives.createLabelMapFunction({ labelMap });
  const document = withoutProof(derived);
  const statements = await primitives.labelReplacementCanonicalizeJsonLd({
    document,
    labelMapFactoryFunction,
    options,
  });
  const remaining = [...signatures];
  return new Map(
    statements.map((statement, index) => [
      asSigned(statement),
      mandatoryIndexes.includes(index) ? 'mandatory' : remaining.shift()!,
    ]),
  );
}

/** Relabels as the library does. */
const relabel = (statement: string, labelMap: primitives.LabelMap): string =>
  statement.replace(/(_:([^\s]+))/g, (_all, _node, label: string) => `_:${labelMap.get(label)}`);

function findLabels(
  statements: string[],
  nodes: string[],
  labels: string[],
  signed: ReadonlyMap<string, unknown>,
  mayRepeat: boolean,
): primitives.LabelMap | undefined {
  const labelMap: primitives.LabelMap = new Map();
  const nodesIn = statements.map((statement) =>
    nodes.filter((node) => `${statement} `.includes(`_:${node} `)),
  );
  const fits = (): boolean =>
    statements.every(
      (statement, index) =>
        !nodesIn[index]!.every((node) => labelMap.has(node)) ||
        signed.has(asSigned(`${relabel(statement, labelMap)}\n`)),
    );
  const search = (depth: number): boolean => {
    const node = nodes[depth];
    if (!fits()) return false;
    if (node === undefined) return true;
    const used = new Set(labelMap.values());
    for (const label of labels) {
      if (used.has(label) && !mayRepeat) continue;
      labelMap.set(node, label);
      if (search(depth + 1)) return true;
      labelMap.delete(node);
    }
    return false;
  };
  return search(0) ? labelMap : undefined;
}

/**
 * Chooses the mandatory statements, each of which must occur once, and the signatures of the others.
 */
function choose(
  statements: string[],
  signed: ReadonlyMap<string, Uint8Array | 'mandatory'>,
): Pick<encoding.DisclosureProof, 'signatures' | 'mandatoryIndexes'> | undefined {
  const mandatory = new Set([...signed.keys()].filter((statement) => signed.get(statement) === 'mandatory'));
  const signatures: Uint8Array[] = [];
  const mandatoryIndexes: number[] = [];
  for (const [index, statement] of statements.map(asSigned).entries()) {
    const signature = signed.get(statement);
    if (mandatory.delete(statement)) mandatoryIndexes.push(index);
    else if (signature && signature !== 'mandatory') signatures.push(signature);
    else return undefined;
  }
  return mandatory.size === 0 ? { signatures, mandatoryIndexes } : undefined;
}
