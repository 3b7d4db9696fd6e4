import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { percentDecoded } from '../../../service/base/mask-secrets';

/** Secrets, keyed by a name for messages. */
export type Secrets = Readonly<Record<string, string>>;

/**
 * The number of characters of a secret that count as a leak. Text may be cut in the middle of a secret.
 */
const TELLING = 12;
/** In hex these are as many characters of a text. Six could be in a megabyte of bytecode by chance. */
const TELLING_IN_HEX = 2 * TELLING;

/**
 * A new, unique secret. `before`: its beginning, for example characters that need escaping.
 */
export function mark(before = ''): string {
  return `${before}${randomBytes(16).toString('hex')}`;
}

/**
 * The names of the secrets that left a trace in an output. A trace is any twelve characters of a secret, in
 * any case, percent-encoded or decoded, escaped for JSON, in hex (then 24 digits) or in base64.
 */
export function tracesOf(secrets: Secrets, output: string | Buffer): string[] {
  const text = (typeof output === 'string' ? output : output.toString('latin1')).toLowerCase();
  const owners = new Map<string, string>();
  for (const [name, secret] of Object.entries(secrets)) {
    for (const piece of formsOf(secret).flatMap((form) => piecesOf(form, TELLING))) owners.set(piece, name);
    for (const piece of hexFormsOf(secret).flatMap((form) => piecesOf(form, TELLING_IN_HEX)))
      owners.set(piece, name);
  }
  const found = new Set<string>();
  for (const searched of [text, withoutDumps(text)]) {
    for (let at = 0; at + TELLING <= searched.length; at++) {
      const owner =
        owners.get(searched.slice(at, at + TELLING)) ?? owners.get(searched.slice(at, at + TELLING_IN_HEX));
      if (owner !== undefined) found.add(owner);
    }
  }
  return [...found];
}

/**
 * Removes the spaces between the bytes of a Buffer that `inspect` shows. With them, twelve characters are
 * four bytes, which two secrets may share by chance.
 */
function withoutDumps(text: string): string {
  return text.replace(/\b([0-9a-f]{2}) (?=[0-9a-f]{2}\b)/g, '$1');
}

/**
 * The files in the folders that were written since `since` (epoch milliseconds) and have a trace, each with
 * the name of the secret. Equal files are searched once: some have many megabytes.
 */
export function tracesInFiles(secrets: Secrets, folders: readonly string[], since = 0): string[] {
  const searched = new Set<string>();
  return folders.flatMap(filesBelow).flatMap((path) => {
    // Another command may remove a file meanwhile, such as its lock.
    const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (written < since || !existsSync(path)) return [];
    const content = readFileSync(path);
    const digest = createHash('sha256').update(content).digest('hex');
    if (searched.has(digest)) return [];
    searched.add(digest);
    return tracesOf(secrets, content).map((name) => `${path}: ${name}`);
  });
}

function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function formsOf(secret: string): string[] {
  const bare = secret.replace(/^0x/i, '');
  const decoded = percentDecoded(secret);
  const texts = [bare, decoded].flatMap((text) => [text, encodeURIComponent(text), ...escapes(text)]);
  return [...texts, ...bytesOf(secret).flatMap(base64Of)];
}

function hexFormsOf(secret: string): string[] {
  return bytesOf(secret).map((bytes) => bytes.toString('hex'));
}

/** The bytes of its text, and those that it stands for. */
function bytesOf(secret: string): Buffer[] {
  const bare = secret.replace(/^0x/i, '');
  const bytes = [Buffer.from(bare), Buffer.from(percentDecoded(secret))];
  if (/^([0-9a-f]{2})+$/i.test(bare)) bytes.push(Buffer.from(bare, 'hex'));
  if (/^[A-Za-z0-9+/]{43}=$/.test(bare)) bytes.push(Buffer.from(bare, 'base64'));
  return bytes;
}

function escapes(text: string): string[] {
  const once = JSON.stringify(text).slice(1, -1);
  return [once, JSON.stringify(once).slice(1, -1)];
}

/**
 * Base64 depends on the text before, such as the user before a password: all three alignments, without the
 * characters that share bits with their neighbours.
 */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
    return (['base64', 'base64url'] as const).map((encoding) =>
      shifted.toString(encoding).slice(shift && 4, -4),
    );
  });
}

/** Pieces of each line, without the beginning that all keys of a kind share. */
function piecesOf(form: string, length: number): string[] {
  const lines = form.split(/\\n|[\r\n]+/).map((line) => line.replace(/^(MC4CAQAwBQYDK2VwBCIEI|-----.*)/, ''));
  return lines.flatMap((line) =>
    Array.from({ length: Math.max(0, line.length - length + 1) }, (_, at) =>
      line.slice(at, at + length).toLowerCase(),
    ),
  );
}
