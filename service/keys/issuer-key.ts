import { createHash, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { MULTIKEY_CONTEXT_URL, p256Multibase, p256PublicKey, type DidKeyPair } from '../base/did-key-pair';
import { ConfigurationError, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import { askService } from '../base/worker-tasks';
import type { IssuerKey, ModuleIssuerKey } from '../config/key-settings';
import { openModule, placeOf, type AskModule } from './pkcs11';
import { RemoteSigner, signerError } from './signer-state';

/** Gives the signer: at once, or after the module was asked. Its signatures are r and s, 32 bytes each. */
export type IssuerSource = () => Promise<EcdsaMultikey.Signer>;

/**
 * Opens the issuer's key. Both the public and the secret part of a pair are imported here, so that a damaged
 * pair is detected. A module is asked with the first signature, because it may be away now.
 *
 * @param ask asks the module. A signing thread asks the service, which has opened it.
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function openIssuerKey(key: IssuerKey, ask: AskModule = askService): Promise<IssuerSource> {
  if ('module' in key) return moduleSource(key, ask);
  const signer = await pairSigner(key);
  return async () => signer;
}

async function pairSigner(key: DidKeyPair): Promise<EcdsaMultikey.Signer> {
  try {
    const pair = await EcdsaMultikey.from({ '@context': MULTIKEY_CONTEXT_URL, ...key });
    return pair.signer();
  } catch (cause) {
    const remedy = 'Restore the pair you had, or make the next one with `npx tdoc did --rotate`.';
    const message = `DID_KEY_PAIRS is damaged: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('CONFIGURATION_INVALID', message, { cause, remedy });
  }
}

/** The key of a label may become another one, so each signature is checked against the method's key. */
function moduleSource(key: ModuleIssuerKey, ask: AskModule): IssuerSource {
  let known: EcdsaMultikey.Signer | undefined;
  return async () => {
    if (known !== undefined) return known;
    const { id, point } = await verificationMethodOf(key, ask);
    const publicKey = p256PublicKey(point);
    known = {
      id,
      algorithm: 'P-256',
      async sign({ data }) {
        const digest = createHash('sha256').update(data).digest();
        const signature = await ask({ kind: 'sign', label: key.label, curve: 'P-256', digest });
        if (verify('sha256', data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature))
          return signature;
        // The next signature looks for the method again: did.json may have it meanwhile.
        known = undefined;
        const remedy = `Nothing was issued. Find out which key "${key.label}" is now.`;
        throw signerError('SIGNER_ANSWER_WRONG', `The module's signature is not by the key of ${id}`, remedy);
      },
    };
    return known;
  };
}

/** Watches the issuer's key in a module, which each signing thread asks. Undefined for a pair. */
export function watchIssuer(time: Time, key: IssuerKey, logger: Logger): RemoteSigner | undefined {
  if (!('module' in key)) return undefined;
  const ask = openModule(time, key.module);
  const signer = { key: 'issuer', at: placeOf(key.module) } as const;
  return new RemoteSigner(time, signer, () => verificationMethodOf(key, ask), logger);
}

/**
 * The verification method of did.json that has the module's key.
 *
 * @returns `point`: the public key: a byte of form, x and y.
 * @throws SignerError; SIGNER_REFUSED if did.json has no such method.
 */
export async function verificationMethodOf(
  { label, controller, didDocumentPath }: ModuleIssuerKey,
  ask: AskModule,
): Promise<{ id: string; point: Uint8Array }> {
  const { publicKey: point } = await ask({ kind: 'describe', label, curve: 'P-256' });
  const multibase = p256Multibase(point);
  const method = methodsIn(didDocumentPath).find(
    (one) => one.publicKeyMultibase === multibase && one.controller === controller,
  );
  if (method !== undefined) return { id: method.id, point };
  const problem = `${didDocumentPath} has no verification method with the module's key "${label}"`;
  throw signerError('SIGNER_REFUSED', problem, 'Run `npx tdoc did --check`.');
}

type Method = Omit<DidKeyPair, 'secretKeyMultibase'>;

function methodsIn(didDocumentPath: string): Method[] {
  try {
    const { verificationMethod } = JSON.parse(readFileSync(didDocumentPath, 'utf8')) as {
      verificationMethod?: Method[];
    };
    return Array.isArray(verificationMethod) ? verificationMethod : [];
  } catch (cause) {
    const problem = `The issuer's key needs ${didDocumentPath}: ${messageOf(cause)}`;
    const remedy = 'Restore it, or make it with `npx tdoc setup --pkcs11`.';
    throw signerError('SIGNER_REFUSED', problem, remedy, cause);
  }
}
