import { hashMessage, recoverAddress } from 'ethers';
import * as z from 'zod';
import { orUndefined } from '../base/errors';
import { members, must, shaped } from '../base/json';
import { registryName } from '../base/registry-name';
import { seal, unseal } from '../base/seal';
import { createSemaphore } from '../base/semaphore';
import type { Time } from '../base/time';
import type { FollowedRegistry } from '../config/followed-registries';
import { PERMISSIONS, type AccessKeys, type NewKey } from './access-keys';
import { isSignedByContract } from './contract-signature';
import { readLoginMessage, refused } from './login-message';
import { partyOf } from './scope';

/** GET /console/api/wallet-login: what wallets sign for. 204 if wallets do not log in. */
export interface WalletPlace {
  /** Of the settings. */
  domain: string;
  /** The chains of the followed registries. */
  chainIds: number[];
}

/** Wallets prove who they are, and get a key that sees what their account is a party to. */
export interface WalletLogin {
  /** What wallets sign for. */
  place(this: void): Promise<WalletPlace>;
  /** A nonce for a message. It shows its time, so that only nonces that were used are stored. */
  makeNonce(): string;
  /**
   * @throws RequestError LOGIN_INVALID, LOGIN_REFUSED; UnavailableError LOGIN_UNDECIDED; TooOftenError
   *   LOGIN_ATTEMPTS.
   */
  login(body: unknown, caller: LoginCaller): Promise<NewKey>;
}

interface LoginCaller {
  /** Aborts when the caller has left. */
  left: AbortSignal;
  /** Called before a key is made, and before nodes are asked. It may throw. */
  limit(this: void): void;
}

interface WalletLoginParts {
  /** Of the settings. */
  domain: string;
  /** Seals nonces. Anybody gets one, so it must not follow from what people choose; 32 bytes. */
  sealingKey: Uint8Array;
  keys: Pick<AccessKeys, 'make'>;
  time: Time;
  /** The followed registries. */
  followed(this: void): Promise<FollowedRegistry[]>;
}

const LONGEST_MESSAGE = 4_000;

/** The body of `POST /login`. */
export const LOGIN_REQUEST = members('a log-in', {
  message: z
    .string({ error: must('a text', 'Give the message that the wallet signed.') })
    .max(LONGEST_MESSAGE, `has more than ${LONGEST_MESSAGE} characters. Shorten it.`)
    .describe('As EIP-4361 has it, with a nonce of `POST /login/nonce`.'),
  signature: z
    .string({ error: must('a text', 'Give the signature of the message.') })
    // Wallets of several owners, or of passkeys, take some hundred bytes for each.
    .regex(/^0x([\da-fA-F]{2}){1,8192}$/, 'is not hexadecimal of at most 8,192 bytes. Begin it with 0x.')
    .describe('By EIP-191, or what a contract account takes by EIP-1271.'),
});

const NONCE_VALID_MS = 10 * 60_000;
/** One nonce has one text. */
const HEX = /^[\da-f]+$/;
/** Contract accounts that nodes are asked about at once. */
const ASKING = { permits: 8, waiting: 100, waitMs: 10_000 };
const NONCES = 'nonces of log-ins';

export function createWalletLogin(parts: WalletLoginParts): WalletLogin {
  const { domain, sealingKey: key, keys, time, followed } = parts;

  const { hold: inTurn } = createSemaphore(time, ASKING, 'Too many log-ins at once: try it again later.');

  /** NaN if this service did not make the nonce. */
  function ageOf(nonce: string): number {
    if (!HEX.test(nonce)) return NaN;
    const sealed = Buffer.from(nonce, 'hex').toString('base64url');
    return time.now() - Number(orUndefined(() => unseal(key, sealed, NONCES).toString()) ?? NaN);
  }

  return {
    makeNonce: () =>
      Buffer.from(seal(key, Buffer.from(String(time.now())), NONCES), 'base64url').toString('hex'),
    async place() {
      const chainIds = (await followed()).map(({ network }) => network.chainId);
      return { domain, chainIds: [...new Set(chainIds)] };
    },
    async login(body, { left, limit }) {
      const { message, signature } = shaped(LOGIN_REQUEST, body, 'LOGIN_INVALID');
      const { address, chainId, nonce, endsAt } = readLoginMessage(message, domain, time.now());
      if (!(Math.abs(ageOf(nonce)) < NONCE_VALID_MS))
        throw refused('Nonce', 'is not of this service, or is old. Get one with POST /login/nonce.');
      const registry = (await followed()).find(({ network }) => network.chainId === chainId);
      if (registry === undefined)
        throw refused(
          'Chain ID',
          `is ${chainId}, and no registry is followed there. Give that of the token.`,
        );
      const digest = hashMessage(message);
      // A contract's signature may have any form.
      const signer = orUndefined(() => recoverAddress(digest, signature));
      limit();
      const isSigned =
        signer === address ||
        (await inTurn(left, () => isSignedByContract(time, registry, { address, digest, signature })));
      if (!isSigned) throw refused('address', 'is not that of the signature. Sign with its key.');
      const party = partyOf(registryName(chainId, address));
      const terms = { owner: party, name: party, scope: { parties: [party] }, may: PERMISSIONS };
      const made = await keys.make({ ...terms, expiresAt: endsAt, nonce });
      if (made === undefined) throw refused('Nonce', 'was used. Get another one with POST /login/nonce.');
      return made;
    },
  };
}
