import { codeOf, messageOf, ServiceError } from '../../service/errors';
import { credentialIn } from '../../service/verification/presented-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { maskSecrets } from '../masked-output';
import { printable, printableJson } from '../printable';
import { readJsonInput } from '../user-file';
import { pointersOf, trustedContextsOf } from './arguments';
import { verificationSources } from './sources';
import { EXIT_CODES, reportJson, reportLines } from './verification-report';

/** The arguments of `npx hardhat verify-credential`. */
export interface VerifyArguments {
  file: string;
  reveal: boolean;
  pointers: readonly string[];
  trustContext: string | undefined;
  json: boolean;
}

/** What a command prints, and how it ends. */
export interface CommandResult {
  output: string[];
  errors: string[];
  exitCode: number;
}

/** Verifies the credential in a file. Whatever prevents an answer is COULD NOT TELL too: exit code 2. */
export async function verifyFile(options: VerifyArguments): Promise<CommandResult> {
  try {
    const reveal = pointersOf(options.reveal, options.pointers);
    const trustedContexts = trustedContextsOf(options.trustContext);
    const credential = credentialIn(await readJsonInput(options.file));
    const verification = await verifyCredential(credential, verificationSources(), {
      reveal,
      trustedContexts,
    });
    const output = options.json ? [reportJson(verification)] : reportLines(verification);
    return { output, errors: [], exitCode: EXIT_CODES[verification.outcome] };
  } catch (thrown) {
    return notVerified(thrown, options.json);
  }
}

function notVerified(thrown: unknown, json: boolean): CommandResult {
  const outcome = 'could not tell';
  const code = codeOf(thrown) ?? 'UNEXPECTED_ERROR';
  const message = maskSecrets(messageOf(thrown));
  const { remedy } = thrown instanceof ServiceError ? thrown : {};
  const hint = remedy !== undefined && !message.includes(remedy) ? [remedy] : [];
  return {
    output: json ? [printableJson({ outcome, error: { code, message } })] : [],
    errors: [`${message} [${code}]`, ...hint].map((line) => printable(line)),
    exitCode: EXIT_CODES[outcome],
  };
}
