import { askHardhat, askTdoc } from './command-answer';

/** Runs `npx hardhat …` and returns its standard output. Rejects unless it exits with 0. */
export const hardhat = outputOf(askHardhat);

/** The same for `npx tdoc …`. */
export const tdoc = outputOf(askTdoc);

/** Runs a command and returns its standard output. Rejects unless it exits with 0. */
export function outputOf(ask: typeof askTdoc) {
  return async (args: string[], settings: Record<string, string>): Promise<string> => {
    const { code, stdout, stderr } = await ask(args, settings);
    if (code === 0) return stdout;
    throw Object.assign(new Error(`${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`), {
      code,
      stderr,
    });
  };
}
