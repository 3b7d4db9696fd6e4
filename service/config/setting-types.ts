import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { ConfigurationError, messageOf } from '../base/errors';
import { FINALITY_TAGS, MOST_CONFIRMATIONS } from '../chain/networks';

/** How secrets.ts finds what of a setting must not be printed. */
export type Secrecy = 'whole' | 'key pair' | 'PEM' | 'URL' | 'URLs' | 'database URL';

/** The settings that are secret. */
export const SECRECY = z.registry<{ secrecy: Secrecy }>();

/** Any text. */
export const text = z.string();

/** An optional setting that must not be printed. */
export function secret<Schema extends z.ZodType>(secrecy: Secrecy, schema: Schema): z.ZodOptional<Schema> {
  const optional = z.optional(schema);
  SECRECY.add(optional, { secrecy });
  return optional;
}

/**
 * A setting whose value is made of its text. For a wrong text, `read` throws or returns undefined.
 *
 * @param problem with `{value}` where the wrong text is to be shown.
 */
export function parsed<Value>(read: (text: string) => Value | undefined, problem: string, remedy?: string) {
  return text.transform((given, context): Value => {
    try {
      const value = read(given);
      if (value !== undefined) return value;
    } catch {
      // The message of a library may hold the value.
    }
    const message = problem.replace('{value}', () => shown(given));
    return refuse(context, message, remedy);
  });
}

/** Refuses a text: "NAME problem. Remedy". */
export function refuse(context: z.RefinementCtx, message: string, remedy?: string): never {
  context.addIssue({ code: 'custom', message, params: { remedy } });
  return z.NEVER;
}

/** A URL of one of these schemes, or one word instead. */
export function url<Word extends string = never>(schemes: string[], word?: Word) {
  return parsed(
    (given) => {
      if (given.toLowerCase() === word) return word;
      return schemes.includes(new URL(given).protocol.slice(0, -1)) ? given : undefined;
    },
    'is not a URL',
    `It starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}${word ? `, or is ${word}` : ''}`,
  );
}

/** Private keys of secp256k1 are below it. */
export const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** A private key of secp256k1, with `0x` and in lower case. Undefined if the text is none. */
export function privateKeyOf(text: string): string | undefined {
  const [, digits] = /^(?:0x)?([0-9a-f]{64})$/i.exec(text) ?? [];
  const key = BigInt(`0x${digits ?? 0}`);
  return key > 0n && key < SECP256K1_ORDER ? `0x${digits?.toLowerCase()}` : undefined;
}

/** The texts of a list that spaces or commas separate. */
export function listed(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

const OF_NODES = /^(https?|wss?):$/;
const STARTS = 'It starts with http:// or https:// or ws:// or wss://; spaces or commas separate several';

/** One URL of a node, or several, each once. */
export const nodeUrls = text.transform((given, context): [string, ...string[]] => {
  const [first = '', ...others] = listed(given);
  const all = [first, ...others];
  const wrongOne = all.findIndex((one) => !URL.canParse(one) || !OF_NODES.test(new URL(one).protocol));
  if (wrongOne >= 0) {
    const which =
      all.length < 2 ? 'is not a URL' : `is a list, and number ${wrongOne + 1} in it is not a URL`;
    return refuse(context, which, STARTS);
  }
  const isTwice = new Set(all.map((one) => new URL(one).href)).size < all.length;
  if (!isTwice) return [first, ...others];
  const remedy = 'Name each node once: two answers of one node are not those of two nodes.';
  return refuse(context, 'has the same URL twice', remedy);
});

/** A whole number from `least` to `most`. */
export function integer(least: number, most: number) {
  return parsed(
    (given) =>
      /^\d+$/.test(given) && Number(given) >= least && Number(given) <= most ? Number(given) : undefined,
    `{value} is not a whole number from ${least} to ${most}`,
  );
}

/** Confirmations in JSON. */
export function confirmationsIn(error: z.core.$ZodErrorMap | string) {
  const number = z.int({ error }).min(0, { error }).max(MOST_CONFIRMATIONS, { error });
  return z.union([number, z.enum(FINALITY_TAGS)], { error });
}

/** `true` or `false`. */
export const flag = parsed(
  (given) => [true, false].find((value) => String(value) === given.toLowerCase()),
  '{value} is neither true nor false',
);

/** A random key of 32 bytes, in base64. */
export const bytes32 = parsed(
  (given) => (/^[A-Za-z0-9+/]{43}=?$/.test(given) ? Buffer.from(given, 'base64') : undefined),
  'is not the base64 of 32 bytes',
  'Make a key with `openssl rand -base64 32`.',
);

/** A key that callers show: browsers and HTTP clients cannot send all other characters in a header. */
export const accessKey = parsed(
  (given) => (/^[\x20-\x7e]{16,}$/.test(given) ? given : undefined),
  'is not a key of at least 16 characters, all printable ASCII',
  `Make one with \`node -p "require('crypto').randomBytes(24).toString('base64url')"\`.`,
);

/** Characters of an address. Keys are longer. */
const LONGEST_SHOWN = 42;

/** A wrong value for a message. A value that may be a key, or a URL with one, is not shown. */
export function shown(value: string): string {
  const mayBeSecret = value.length > LONGEST_SHOWN || value.includes('@');
  return mayBeSecret ? `(${value.length} characters)` : `"${value}"`;
}

/** The error for a wrong setting: "NAME problem. Remedy". */
export function wrong(name: string, problem: string, remedy?: string): ConfigurationError {
  const message = `${name} ${problem}.${remedy ? ` ${remedy}` : ''}`;
  return new ConfigurationError('CONFIGURATION_INVALID', message, remedy ? { remedy } : {});
}

/** The error for a setting that its schema refuses. */
export function refused(name: string, { issues: [issue] }: z.ZodError): ConfigurationError {
  const params = issue?.code === 'custom' ? issue.params : undefined;
  return wrong(name, issue?.message ?? 'is wrong', params?.remedy as string | undefined);
}

/** Reads a file that a setting names. @throws ConfigurationError CONFIGURATION_INVALID */
export function readSettingFile(name: string, path: string): Buffer {
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (cause) {
    throw wrong(name, `${path} cannot be read: ${messageOf(cause)}`);
  }
  // PowerShell's `>` writes UTF-16, which has zeros.
  if (content.includes(0)) throw wrong(name, `${path} is in UTF-16, or is no text`, 'Save it as UTF-8.');
  return content;
}
