import { InvalidArgumentError } from 'commander';

// Descriptions of arguments and options that several commands share.

export const TOKEN =
  'Token id (64 hexadecimal digits; 0x and hexadecimal; decimal), or a file: a credential or ' +
  'the answer of POST /create';
export const CREDENTIAL_FILE = 'The credential, or the answer of POST /create; - is standard input';
export const REGISTRY = ['--registry <address>', 'registry (default: TOKEN_REGISTRY_ADDRESS)'] as const;
export const NETWORK = ['--network <name>', 'network of the registry (default: NET)'] as const;
export const REMARK = [
  '--remark <text>',
  'at most 120 bytes; encrypted if a credential is given, otherwise everybody can read it',
] as const;
export const CREDENTIAL = [
  '--credential <file>',
  'credential, or answer of POST /create, whose id is the key that encrypts the remark',
] as const;
export const JSON_FLAG = ['--json', 'print one JSON object'] as const;
export const YES = ['--yes', 'do not ask for confirmation'] as const;

/** Parses a number without a sign or a fraction: a block, days. */
export function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a whole number, 0 or more.');
}

/** Adds a number to those given before it. */
export function wholeNumbers(text: string, earlier: readonly number[] = []): number[] {
  return [...earlier, wholeNumber(text)];
}

/** The examples at the end of a command's help. */
export function examples(...lines: readonly string[]): string {
  return ['', `Example${lines.length > 1 ? 's' : ''}:`, ...lines.map((line) => `  $ npx tdoc ${line}`)].join(
    '\n',
  );
}
