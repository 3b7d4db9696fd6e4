import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { workerData } from 'node:worker_threads';
import * as pkcs11 from 'pkcs11js';
import { messageOf, SignerError } from '../base/errors';
import { systemTime, timeAt } from '../base/time';
import { serveTasks } from '../base/worker-tasks';
import type { ModuleSettings } from '../config/key-settings';
import { signerError } from './signer-state';

/**
 * The curves of the issuer's key and of the wallet's: DER of the object identifier (RFC 5480, section
 * 2.1.1.1; SEC 2, A.2.1), and the setting that names the key.
 */
const CURVES = {
  'P-256': { identifier: Buffer.from('06082a8648ce3d030107', 'hex'), setting: 'DID_PKCS11_KEY' },
  secp256k1: { identifier: Buffer.from('06052b8104000a', 'hex'), setting: 'WALLET_PKCS11_KEY' },
};
type Curve = keyof typeof CURVES;

/** A question to the module about the key pair of this label. */
export type ModuleQuestion = { label: string; curve: Curve } & (
  | { kind: 'describe' }
  /** Finds the key, or makes it: not extractable, and allowed to sign only. */
  | { kind: 'make' }
  /** `digest`: 32 bytes. */
  | { kind: 'sign'; digest: Uint8Array }
);

/** The public part of a key pair, and how the module protects the private one. */
export interface KeyDescription {
  /** Uncompressed: a byte of form, x and y. */
  publicKey: Uint8Array;
  isExtractable: boolean;
  /** The operations that the module allows with it. */
  uses: string[];
}

/** The answers, by the kinds of questions. */
export interface ModuleAnswers {
  describe: KeyDescription;
  /** `isNew`: whether there was no key of this label. */
  make: KeyDescription & { isNew: boolean };
  /** r and s, 32 bytes each. */
  sign: Uint8Array;
}
type ModuleAnswer = ModuleAnswers[keyof ModuleAnswers];

/** The data of the thread. */
export interface ThreadData {
  settings: ModuleSettings;
  /** 1 while the module is asked. */
  busy: Int32Array<SharedArrayBuffer>;
}

const SIGNATURE_BYTES = 64;
const POINT_BYTES = 65;
/** The first byte of a point that has x and y (SEC 1, 2.3.3). */
const UNCOMPRESSED = 4;

/** PKCS #11 v2.40, section 3.6: the module refused the PIN, and may count it. */
const PIN_REFUSED = new Set([
  pkcs11.CKR_PIN_INCORRECT,
  pkcs11.CKR_PIN_INVALID,
  pkcs11.CKR_PIN_LEN_RANGE,
  pkcs11.CKR_PIN_EXPIRED,
  pkcs11.CKR_PIN_LOCKED,
]);

const USES = {
  sign: pkcs11.CKA_SIGN,
  decrypt: pkcs11.CKA_DECRYPT,
  derive: pkcs11.CKA_DERIVE,
  unwrap: pkcs11.CKA_UNWRAP,
};

interface Open {
  library: pkcs11.PKCS11;
  session: Buffer;
  /** Private keys by curve and label. */
  keys: Map<string, Buffer>;
}

/** A PKCS #11 module, and the session in which one token signs. */
class KeyModule {
  /** Stays loaded. */
  #library: pkcs11.PKCS11 | undefined;
  #isInitialised = false;
  #open: Open | undefined;
  /** Kept in this process too: another log-in with the same PIN is never tried. */
  #refusedPin: string | undefined;

  constructor(private readonly settings: ModuleSettings) {}

  /** @throws SignerError */
  answer(question: ModuleQuestion): ModuleAnswer {
    for (let isAgain = false; ; isAgain = true)
      try {
        return this.#ask(question);
      } catch (error) {
        if (error instanceof SignerError) throw error;
        this.#close();
        // The module may have ended the session, or was restarted: another session is opened, once.
        if (isAgain) throw this.#unreachable(`fails with ${messageOf(error)}`, error);
      }
  }

  #ask(question: ModuleQuestion): ModuleAnswer {
    const open = (this.#open ??= this.#begin());
    if (question.kind === 'describe') return this.#describe(open, question);
    if (question.kind === 'make') {
      const { label, curve } = question;
      const isNew = find(open, pkcs11.CKO_PRIVATE_KEY, label).length === 0;
      if (isNew) make(open, label, curve);
      return { ...this.#describe(open, question), isNew };
    }
    const { library, session } = open;
    library.C_SignInit(session, { mechanism: pkcs11.CKM_ECDSA }, this.#privateKey(open, question));
    const signature = library.C_Sign(session, Buffer.from(question.digest), Buffer.alloc(SIGNATURE_BYTES));
    return new Uint8Array(signature);
  }

  #begin(): Open {
    const library = (this.#library ??= this.#load());
    try {
      initialise(library);
      this.#isInitialised = true;
      const slot = this.#slotOf(library);
      const session = library.C_OpenSession(slot, pkcs11.CKF_SERIAL_SESSION | pkcs11.CKF_RW_SESSION);
      this.#logIn(library, slot, session);
      return { library, session, keys: new Map() };
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  #load(): pkcs11.PKCS11 {
    const library = new pkcs11.PKCS11();
    try {
      library.load(this.settings.path);
      return library;
    } catch (cause) {
      const remedy = 'Correct PKCS11_MODULE: it is the path of the library that came with the module.';
      throw this.#unreachable(`cannot be loaded (${messageOf(cause)})`, cause, remedy);
    }
  }

  #slotOf(library: pkcs11.PKCS11): Buffer {
    const { token } = this.settings;
    const isNamed = (slot: Buffer): boolean => library.C_GetTokenInfo(slot).label.trimEnd() === token;
    const [slot, ...others] = library.C_GetSlotList(true).filter(isNamed);
    if (slot === undefined) {
      const remedy = 'Connect the token, or correct PKCS11_TOKEN.';
      throw this.#unreachable(`has no token "${token}"`, undefined, remedy);
    }
    if (others.length === 0) return slot;
    throw this.#refused(`has several tokens "${token}"`, 'Give each its own label.');
  }

  /** Modules count refused PINs, and lock the token, or erase it, after a few. */
  #logIn(library: pkcs11.PKCS11, slot: Buffer, session: Buffer): void {
    const pin = this.#pin();
    if (pin === undefined) return;
    const { flags } = library.C_GetTokenInfo(slot);
    if ((flags & pkcs11.CKF_USER_PIN_LOCKED) !== 0)
      throw this.#pinRefused('is locked', "Unlock it with the module's own program.");
    if ((flags & pkcs11.CKF_USER_PIN_FINAL_TRY) !== 0) {
      const remedy = "Log in once with the module's own program, so that it allows more tries again.";
      throw this.#pinRefused('has one try left, which is not spent here', remedy);
    }
    if (pin === this.#refusedPin || this.#isMarked()) {
      // PKCS11_PIN was read at the start. `tdoc keys --retry` takes the marker away for a corrected one.
      if (this.settings.pinFile === undefined) this.#refusedPin = pin;
      throw this.#pinRefused('was refused before, and is not tried again by itself', this.#correctPin());
    }
    this.#requireMarkable();
    try {
      library.C_Login(session, pkcs11.CKU_USER, pin);
    } catch (error) {
      const reason = numberOf(error);
      if (reason === pkcs11.CKR_USER_ALREADY_LOGGED_IN) return;
      if (reason === undefined || !PIN_REFUSED.has(reason)) throw error;
      this.#refusedPin = pin;
      this.#mark();
      throw this.#pinRefused(`is refused (${messageOf(error)})`, this.#correctPin());
    }
  }

  #correctPin(): string {
    return this.settings.pinFile === undefined
      ? 'Correct PKCS11_PIN, run `npx tdoc keys --retry`, then restart the service.'
      : 'Correct the PIN in the file of PKCS11_PIN_FILE, then run `npx tdoc keys --retry`.';
  }

  /** Read at each log-in, so that a file with another PIN counts without a restart. */
  #pin(): string | undefined {
    const { pin, pinFile } = this.settings;
    if (pinFile === undefined) return pin;
    const remedy = 'Make it readable for the service, or correct PKCS11_PIN_FILE.';
    let read: string;
    try {
      read = readFileSync(pinFile, 'utf8').trimEnd();
    } catch (cause) {
      throw this.#refused(`needs a PIN, but PKCS11_PIN_FILE cannot be read: ${messageOf(cause)}`, remedy);
    }
    // Not a PIN: its file is being replaced.
    if (read === '') throw this.#refused('needs a PIN, but PKCS11_PIN_FILE is empty', remedy);
    return read;
  }

  /** A refusal that could not be kept would be forgotten by the next start. */
  #requireMarkable(): void {
    const folder = dirname(this.settings.refusedPinFile);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.W_OK);
    } catch (cause) {
      const problem = `gets no PIN, because its refusal could not be kept: ${messageOf(cause)}`;
      throw this.#refused(problem, 'Make DATA_DIR writable.');
    }
  }

  /** The file holds neither the PIN nor anything made of it. */
  #mark(): void {
    const { refusedPinFile, path, token } = this.settings;
    const content = { module: path, token, refusedAt: timeAt(systemTime.now()) };
    writeFileSync(refusedPinFile, `${JSON.stringify(content)}\n`, { mode: 0o600, flush: true });
  }

  #isMarked(): boolean {
    const { refusedPinFile, path, token } = this.settings;
    if (!existsSync(refusedPinFile)) return false;
    try {
      const marker = JSON.parse(readFileSync(refusedPinFile, 'utf8')) as { module?: string; token?: string };
      return marker.module === path && marker.token === token;
    } catch {
      // A damaged marker is one all the same.
      return true;
    }
  }

  #privateKey(open: Open, { label, curve }: ModuleQuestion): Buffer {
    const name = `${curve} ${label}`;
    const known = open.keys.get(name);
    if (known !== undefined) return known;
    const [key, ...others] = find(open, pkcs11.CKO_PRIVATE_KEY, label);
    const { token } = this.settings;
    if (key === undefined) {
      const remedy = `Correct ${CURVES[curve].setting}, or make the key with \`npx tdoc setup --pkcs11\`.`;
      throw this.#refused(`has no private key "${label}" in token "${token}"`, remedy);
    }
    if (others.length > 0) {
      const remedy = 'Give each key its own label: another key would sign in its place.';
      throw this.#refused(`has several private keys "${label}" in token "${token}"`, remedy);
    }
    if (!CURVES[curve].identifier.equals(attribute(open, key, pkcs11.CKA_EC_PARAMS)))
      throw this.#refused(
        `has a key "${label}" of another curve than ${curve}`,
        `Name a key of that curve in ${CURVES[curve].setting}.`,
      );
    open.keys.set(name, key);
    return key;
  }

  #describe(open: Open, question: ModuleQuestion): KeyDescription {
    const { label } = question;
    const key = this.#privateKey(open, question);
    const id = attribute(open, key, pkcs11.CKA_ID);
    const points = find(open, pkcs11.CKO_PUBLIC_KEY, label)
      .filter((one, _, all) => all.length === 1 || attribute(open, one, pkcs11.CKA_ID).equals(id))
      .map((one) => attribute(open, one, pkcs11.CKA_EC_POINT));
    const [point] = points;
    if (point === undefined || points.length > 1) {
      const remedy = 'Import the public key that belongs to it, with the same label and id.';
      throw this.#refused(`has ${points.length} public keys "${label}" of the private one's id`, remedy);
    }
    // A DER octet string, or its content: modules do either.
    const publicKey = new Uint8Array(point.subarray(-POINT_BYTES));
    if (publicKey.length !== POINT_BYTES || publicKey[0] !== UNCOMPRESSED)
      throw this.#refused(`has a public key "${label}" in another form`, 'Import it in uncompressed form.');
    const has = (type: number): boolean => attribute(open, key, type)[0] === 1;
    return {
      publicKey,
      isExtractable: has(pkcs11.CKA_EXTRACTABLE),
      uses: Object.entries(USES).flatMap(([use, type]) => (has(type) ? [use] : [])),
    };
  }

  #close(): void {
    this.#open = undefined;
    if (!this.#isInitialised) return;
    this.#isInitialised = false;
    try {
      this.#library?.C_Finalize();
    } catch {
      // A module that is gone cannot end anything.
    }
  }

  #unreachable(problem: string, cause?: unknown, remedy = 'Start the module, or connect it.'): SignerError {
    return signerError('SIGNER_UNREACHABLE', `The module ${this.settings.path} ${problem}`, remedy, cause);
  }

  #refused(problem: string, remedy: string): SignerError {
    return signerError('SIGNER_REFUSED', `The module ${this.settings.path} ${problem}`, remedy);
  }

  #pinRefused(problem: string, remedy: string): SignerError {
    return signerError('SIGNER_PIN_REFUSED', `The PIN of token "${this.settings.token}" ${problem}`, remedy);
  }
}

function initialise(library: pkcs11.PKCS11): void {
  try {
    library.C_Initialize({ flags: pkcs11.CKF_OS_LOCKING_OK });
  } catch (error) {
    if (numberOf(error) !== pkcs11.CKR_CRYPTOKI_ALREADY_INITIALIZED) throw error;
  }
}

function make({ library, session }: Open, label: string, curve: Curve): void {
  const both = [
    { type: pkcs11.CKA_TOKEN, value: true },
    { type: pkcs11.CKA_LABEL, value: label },
    { type: pkcs11.CKA_ID, value: Buffer.from(label) },
  ];
  library.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11.CKM_EC_KEY_PAIR_GEN },
    [
      ...both,
      { type: pkcs11.CKA_VERIFY, value: true },
      { type: pkcs11.CKA_EC_PARAMS, value: CURVES[curve].identifier },
    ],
    [
      ...both,
      { type: pkcs11.CKA_PRIVATE, value: true },
      { type: pkcs11.CKA_SENSITIVE, value: true },
      { type: pkcs11.CKA_EXTRACTABLE, value: false },
      ...Object.values(USES).map((type) => ({ type, value: type === USES.sign })),
    ],
  );
}

/** The keys on elliptic curves of a class and label, two at most. */
function find({ library, session }: Open, kind: number, label: string): Buffer[] {
  library.C_FindObjectsInit(session, [
    { type: pkcs11.CKA_CLASS, value: kind },
    { type: pkcs11.CKA_KEY_TYPE, value: pkcs11.CKK_EC },
    { type: pkcs11.CKA_LABEL, value: label },
  ]);
  try {
    return library.C_FindObjects(session, 2);
  } finally {
    library.C_FindObjectsFinal(session);
  }
}

function attribute({ library, session }: Open, object: Buffer, type: number): Buffer {
  const [found] = library.C_GetAttributeValue(session, object, [{ type }]);
  return Buffer.from(found?.value as Buffer);
}

/** The return value of a module's function (CKR_…). */
function numberOf(error: unknown): number | undefined {
  return error instanceof pkcs11.Pkcs11Error ? error.code : undefined;
}

const { settings, busy } = workerData as ThreadData;
const keyModule = new KeyModule(settings);
serveTasks(async (question: ModuleQuestion) => {
  Atomics.store(busy, 0, 1);
  try {
    return keyModule.answer(question);
  } finally {
    Atomics.store(busy, 0, 0);
    Atomics.notify(busy, 0);
  }
});
