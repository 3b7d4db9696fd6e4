import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Argument, Command, Option } from 'commander';
import * as fc from 'fast-check';
import { allCommands, createProgram } from '../../../cli/program';
import { systemTime } from '../../../service/base/time';
import { askTdoc, type CommandAnswer } from '../processes/command-answer';
import { measuredProcess } from '../processes/process-memory';
import { askTdocInProcess } from '../processes/tdoc-in-process';
import { BYTES } from './requests';
import { problemOfErrors, problemOfText } from './rules';
import { mutated, nestedIn, TEXT } from './values';

/** A command that a seed chose. */
export interface ChosenCommand {
  args: readonly string[];
  /** The files that it may read, by name. */
  files: Readonly<Record<string, Buffer>>;
}

/** `of`: the commands that expect it; all others get it, too. `areLines`: a file of JSON Lines. */
interface Format {
  value: unknown;
  of: readonly string[];
  areLines?: true;
}

/** The names that commands may use. */
export interface CommandSurroundings {
  /** A folder for the files of a command, and nothing else. */
  folder: string;
  settings: Record<string, string>;
  /** A right value of each format that an argument may name. */
  formats: readonly Format[];
  /** Those of the files that settings name. */
  did: unknown;
  config: unknown;
  /** A right text for each placeholder, such as `<token>`. */
  words: Readonly<Record<string, string>>;
}

/** No command needs more for files of a few megabytes. */
const HEAP_MEGABYTES = 512;
/** The file that most arguments name. */
export const INPUT = 'input.json';
/** An argument of a process may have 128 KB. */
const LONGEST_SPAWNED = 100_000;
/** The files that the settings name. */
const OF_SETTINGS = { SERVICE_CONFIG: 'service.config.json', DID_DOCUMENT_PATH: 'did.json' } as const;
/** Options that name a file to write. It stays in the folder. */
const WRITTEN = ['out', 'html', 'publicKeyFile'];
/** `derive` prints a document, which may be as long as what it is given. */
const LONGEST_OUTPUT = 1_000_000;

/** Every command that takes a file or a text, with right and wrong ones. */
export function commandsTo(surroundings: CommandSurroundings): fc.Arbitrary<ChosenCommand> {
  const commands = allCommands(createProgram(systemTime)).filter(takesText);
  const weighted = commands.map((command) => ({
    weight: surroundings.formats.some(({ of }) => of.includes(command.name())) ? 4 : 1,
    arbitrary: fc.record({
      args: argumentsOf(command, surroundings),
      files: filesOf(command, surroundings),
    }),
  }));
  return fc.oneof(...weighted);
}

/** The programs that run until they are stopped parse their own arguments. */
function takesText({ commands, options, registeredArguments }: Command): boolean {
  if (commands.length > 0 || registeredArguments.some(({ variadic }) => variadic)) return false;
  return registeredArguments.length > 0 || options.some(({ required }) => required);
}

function argumentsOf(command: Command, surroundings: CommandSurroundings): fc.Arbitrary<string[]> {
  const path: string[] = [];
  for (let one: Command | null = command; one?.parent; one = one.parent) path.unshift(one.name());
  const given = command.registeredArguments.map((one) => valueOf(one, surroundings));
  const options = command.options.map((option) => optionOf(option, surroundings));
  return fc
    .tuple(fc.tuple(...given), fc.tuple(...options))
    .map(([texts, chosen]) => [...path, ...texts, ...chosen.flat()]);
}

function optionOf(option: Option, surroundings: CommandSurroundings): fc.Arbitrary<string[]> {
  const name = option.long ?? '';
  if (!option.required) return fc.constantFrom<string[]>([], [name]);
  const isWritten = WRITTEN.includes(option.attributeName());
  const value = isWritten
    ? TEXT.map((text) => `new-${text.replaceAll(/[/\0]/g, '_')}`.slice(0, 300))
    : valueOf(option, surroundings);
  const given = value.map((text) => [name, text]);
  return option.mandatory ? given : fc.oneof({ weight: 3, arbitrary: fc.constant<string[]>([]) }, given);
}

/** `-` is standard input, which does not end here. No argument of a process has the character NUL. */
function valueOf(one: Argument | Option, { words }: CommandSurroundings): fc.Arbitrary<string> {
  const [, placeholder = one.name()] = 'flags' in one ? (/<(\w+)(?:\.{3})?>/.exec(one.flags) ?? []) : [];
  const hostile = TEXT.map((text) => (text === '-' ? '_' : text.replaceAll('\0', '')));
  const right = words[placeholder];
  if (placeholder === 'file') return fc.oneof({ weight: 9, arbitrary: fc.constant(INPUT) }, hostile);
  if (placeholder === 'token') return fc.oneof(fc.constant(INPUT), fc.constant(right ?? INPUT), hostile);
  return right === undefined ? hostile : fc.oneof(fc.constant(right), hostile);
}

function filesOf(
  command: Command,
  { formats, did, config }: CommandSurroundings,
): fc.Arbitrary<Record<string, Buffer>> {
  const expected = formats.filter(({ of }) => of.includes(command.name()));
  const sometimes = (right: unknown) =>
    fc.oneof(
      { weight: 9, arbitrary: fc.constant(right) },
      { weight: 1, arbitrary: fc.constant(right).chain(mutated) },
    );
  return fc.record({
    [INPUT]: fc
      .oneof(
        { weight: 4, arbitrary: fc.constantFrom(...(expected.length > 0 ? expected : formats)) },
        { weight: 1, arbitrary: fc.constantFrom(...formats) },
      )
      .chain(contentsOf),
    [OF_SETTINGS.DID_DOCUMENT_PATH]: sometimes(did).map(jsonOf),
    [OF_SETTINGS.SERVICE_CONFIG]: sometimes(config).map(jsonOf),
  });
}

/** The bytes of a file: right, with one or two values wrong, cut off, nested, or no JSON. */
function contentsOf({ value: right, areLines }: Format): fc.Arbitrary<Buffer> {
  const once = fc.constant(right).chain(mutated);
  const text = fc.oneof(
    { weight: 2, arbitrary: fc.constant(right) },
    { weight: 6, arbitrary: once },
    { weight: 4, arbitrary: once.chain(mutated) },
  );
  const bytes = text.map((value) => (areLines ? linesOf(value) : jsonOf(value)));
  const cut = fc.tuple(bytes, fc.nat(2_000)).map(([whole, at]) => whole.subarray(0, at));
  const nested = nestedIn(fc.constant(String(areLines ? linesOf(right) : jsonOf(right))));
  return fc.oneof(
    { weight: 12, arbitrary: bytes },
    cut,
    nested.map((one) => Buffer.from(one)),
    BYTES,
  );
}

function jsonOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value) ?? '');
}

/** Values as JSON Lines. */
function linesOf(values: unknown): Buffer {
  return Buffer.concat([values].flat().flatMap((value) => [jsonOf(value), Buffer.from('\n')]));
}

/** Runs a command in this process, or one with a large file in its own. */
export async function runCommand(
  { args, files }: ChosenCommand,
  { folder, settings }: CommandSurroundings,
): Promise<{ answered: string; problem: string | undefined }> {
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  const named = Object.entries(OF_SETTINGS).map(([setting, name]) => [setting, join(folder, name)]);
  const all = { ...settings, ...(Object.fromEntries(named) as Record<string, string>) };
  const isLarge = Object.values(files).some(({ length }) => length > 1_000_000);
  const isSpawned = isLarge && args.every((text) => Buffer.byteLength(text) < LONGEST_SPAWNED);
  const answer = isSpawned
    ? await askTdoc([...args], { ...all, ...measuredProcess(HEAP_MEGABYTES) }, { cwd: folder })
    : await askTdocInProcess([...args], all, { cwd: folder });
  return { answered: `tdoc ${answer.code}`, problem: problemOf(args[0], answer) };
}

function problemOf(name = '', { code, stdout, stderr }: CommandAnswer): string | undefined {
  if (code !== 0 && code !== 1 && code !== 2) return `it ended with ${code}: ${stderr.slice(-1_000)}`;
  const wrong = problemOfErrors(stderr);
  if (wrong !== undefined) return `${wrong} in its errors: ${JSON.stringify(stderr.slice(0, 1_000))}`;
  if (name !== 'derive' && stdout.length > LONGEST_OUTPUT) return `it prints ${stdout.length} characters`;
  const odd = problemOfText(stdout, LONGEST_OUTPUT);
  return odd === undefined ? undefined : `${odd} in its output: ${JSON.stringify(stdout.slice(0, 1_000))}`;
}
