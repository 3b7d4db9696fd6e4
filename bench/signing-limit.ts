import { v7 as uuidV7 } from 'uuid';
import { loadConfig } from '../service/config/config';
import { createSigningPool } from '../service/issuance/signing-pool';
import { preparationOf } from '../service/composition/issuing';

/** The service's signing alone, without HTTP, database and chain. */
export interface SigningAlone {
  /** Prepares the document of a request's body. */
  sign(body: string): Promise<void>;
  close(): Promise<void>;
}

/** Opens the signing threads of a service with these settings. */
export async function openSigning(settings: Record<string, string>): Promise<SigningAlone> {
  const preparation = preparationOf(loadConfig(settings));
  if (!preparation) throw new Error('the settings have no key pair');
  const pool = await createSigningPool(preparation);
  return {
    async sign(text) {
      const body = new TextEncoder().encode(text);
      await pool.prepare({ documentType: 'BILL_OF_LADING', body, uuid: uuidV7(), issuedAt: Date.now() });
    },
    close: () => pool.destroy(),
  };
}
