import { v7 as uuidV7 } from 'uuid';
import { BILL_OF_LADING } from '../deploy/devnet/bill-of-lading';
import { loadConfig, type Config } from '../service/config';
import { buildCredential } from '../service/issuance/credential';
import { credentialIdOf } from '../service/issuance/credential-id';
import { createDocumentLoader } from '../service/issuance/document-loader';
import { createCredentialSigner, type SignCredential } from '../service/issuance/sign';

/** The service's signing alone, without HTTP, database and chain. */
export interface SigningAlone {
  /** Builds and signs one Bill of Lading, as a request does. */
  sign(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the signing that a service with these settings has. */
export async function openSigning(settings: Record<string, string>): Promise<SigningAlone> {
  const config = loadConfig(settings);
  const contextUrl = config.billOfLadingContextUrl ?? '';
  if (!config.didKeyPair) throw new Error('the settings have no key pair');
  const sign = await createCredentialSigner(config.didKeyPair, createDocumentLoader(contextUrl));
  return { sign: () => signOne(config, sign), close: async () => undefined };
}

async function signOne(config: Config, sign: SignCredential): Promise<void> {
  const issuedAt = new Date();
  const credential = buildCredential({
    id: credentialIdOf(uuidV7()),
    issuedAt,
    issuer: config.didKeyPair?.controller ?? '',
    documentType: 'BILL_OF_LADING',
    documentContextUrl: config.billOfLadingContextUrl ?? '',
    rendererUrl: config.rendererUrl,
    credentialSubject: BILL_OF_LADING,
    currency: config.network.currency,
    chainId: config.network.chainId,
    tokenRegistry: config.tokenRegistryAddress ?? '',
  });
  await sign(credential, issuedAt);
}
