import { hashMessage, recoverAddress } from 'ethers';
import * as z from 'zod';
import { orUndefined, TooOftenError } from '../base/errors';
import { members, must, shaped } from '../base/json';
import { registryName } from '../base/registry-name';
import { seal, unseal } from '../base/seal';
import { createSemaphore } from '../base/semaphore';
import { createTallies, type Tally } from '../base/tallies';
import type { Clock, Time } from '../base/time';
import type { FollowedRegistry } from '../config/followed-registries';
import { PERMISSIONS, type AccessKeys, type NewKey } from './access-keys';
import { isSignedByContract } from './contract-signature';
import { readLoginMessage, refused } from './login-message';
import { partyOf } from './scope';

/** GET /console/api/wallet-login: what wallets sign for. 204 if wallets do not log in. */
export interface WalletPlace {
  /** DOMAIN of the settings. */
  domain: string;
  /** The chains of the followed registries. */
  chainIds: number[];
}

/** Wallets prove who they are, and get a key that sees what their account is a party to. */
export interface WalletLogin {
  /** The facts that a message of a wallet names. */
  place(this: void): WalletPlace;
  /** A nonce for a message. It shows its time, so that only nonces that were used are stored. */
  makeNonce(): string;
  /**
   * @param left aborts when the caller has left.
   * @throws RequestError LOGIN_INVALID, LOGIN_REFUSED; UnavailableError LOGIN_UNDECIDED; TooOftenError
   *   LOGIN_ATTEMPTS.
   */
  login(body: unknown, network: string, left: AbortSignal): Promise<NewKey>;
}

interface WalletLoginParts {
  /** DOMAIN of the settings. */
  domain: string;
  /** Seals nonces. Anybody gets one, so it must not follow from what people choose; 32 bytes. */
  sealingKey: Uint8Array;
  keys: Pick<AccessKeys, 'make'>;
  time: Time;
  /** The chains of the followed registries. */
  chainIds(this: void): number[];
  /** A followed registry of a chain. */
  followedOn(this: void, chainId: number): FollowedRegistry | undefined;
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
/** Contract accounts that nodes are asked about at once. */
const ASKING = { permits: 8, waiting: 100, waitMs: 10_000 };
const NONCES = 'nonces of log-ins';

export function createWalletLogin(parts: WalletLoginParts): WalletLogin {
  const { domain, sealingKey, keys, time, chainIds, followedOn } = parts;
  const { hold: inTurn } = createSemaphore(time, ASKING, 'Too many log-ins at once: try it again later.');
  const countOfNetwork = limitLogins(time, 'Your network', 300);
  const countOfAccount = limitLogins(time, 'The account', 20);

  /** NaN if this service did not make the nonce. */
  function ageOf(nonce: string): number {
    return time.now() - Number(orUndefined(() => unseal(sealingKey, nonce, NONCES, 'hex').toString()) ?? NaN);
  }

  return {
    place: () => ({ domain, chainIds: [...new Set(chainIds())] }),
    makeNonce: () => seal(sealingKey, Buffer.from(String(time.now())), NONCES, 'hex'),
    async login(body, network, left) {
      const { message, signature } = shaped(LOGIN_REQUEST, body, 'LOGIN_INVALID');
      const { address, chainId, nonce, endsAt } = readLoginMessage(message, domain, time.now());
      if (!(Math.abs(ageOf(nonce)) < NONCE_VALID_MS))
        throw refused('Nonce', 'is not of this service, or is old. Get one with POST /login/nonce.');
      const followed = followedOn(chainId);
      if (followed === undefined)
        throw refused(
          'Chain ID',
          `is ${chainId}, and no registry is followed there. Give that of the token.`,
        );
      const digest = hashMessage(message);
      // A contract's signature may have any form.
      const signer = orUndefined(() => recoverAddress(digest, signature));
      countOfNetwork(network);
      const isSigned =
        signer === address ||
        (await inTurn(left, () => isSignedByContract(time, followed, { address, digest, signature })));
      if (!isSigned) throw refused('address', 'is not that of the signature. Sign with its key.');
      const party = partyOf(registryName(chainId, address));
      const counted = countOfAccount(party);
      const terms = { owner: party, name: party, scope: { parties: [party] }, may: PERMISSIONS };
      let made: NewKey | undefined;
      try {
        made = await keys.make({ ...terms, expiresAt: endsAt, nonce });
      } finally {
        // Those who repeat a message do not use up the log-ins of its account.
        if (made === undefined) counted.times--;
      }
      if (made === undefined) throw refused('Nonce', 'was used. Get another one with POST /login/nonce.');
      return made;
    },
  };
}

const HOUR_MS = 3_600_000;

/** Counts log-ins: each makes a key, or asks nodes. The function throws TooOftenError LOGIN_ATTEMPTS. */
export function limitLogins(clock: Clock, who: string, most: number): (name: string) => Tally {
  const tallyOf = createTallies(clock, HOUR_MS);
  return (name) => {
    const tally = tallyOf(name);
    const message = `${who} logged in ${most} times within an hour. Use the keys that it has.`;
    const retryAfterMs = tally.at + HOUR_MS - clock.now();
    if (tally.times >= most) throw new TooOftenError('LOGIN_ATTEMPTS', message, { retryAfterMs });
    tally.times++;
    return tally;
  };
}
