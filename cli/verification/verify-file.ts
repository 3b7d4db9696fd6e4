import { codeOf, messageOf, ServiceError } from '../../service/base/errors';
import { credentialIn } from '../../service/verification/presented-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { maskSecrets } from '../errors';
import { printable, printableJson } from '../terminal/printable';
import { readJsonInput } from '../files/user-file';
import { requirePointers, requireUrls } from './arguments';
import { verificationSources } from './sources';
import { IS_VALID, reportJson, reportLines } from './verification-report';

/** The arguments of `tdoc verify-credential`. `pointers`: undefined discloses everything. */
export interface VerifyArguments {
  file: string;
  pointers: readonly string[] | undefined;
  trustedContexts: readonly string[];
  json: boolean;
}

/** Lines for standard output and standard error. `isValid`: undefined if the answer is not known. */
export interface FileVerification {
  output: string[];
  errors: string[];
  isValid: boolean | undefined;
}

/** Verifies the credential in a file. Any error that prevents an answer is COULD NOT TELL: exit code 2. */
export async function verifyFile(options: VerifyArguments): Promise<FileVerification> {
  try {
    const reveal = options.pointers && requirePointers(options.pointers);
    const trustedContexts = requireUrls(options.trustedContexts);
    const credential = credentialIn(await readJsonInput(options.file));
    const verification = await verifyCredential(credential, verificationSources(), {
      reveal,
      trustedContexts,
    });
    const output = options.json ? [reportJson(verification)] : reportLines(verification);
    return { output, errors: [], isValid: IS_VALID[verification.outcome] };
  } catch (thrown) {
    return notVerified(thrown, options.json);
  }
}

function notVerified(thrown: unknown, json: boolean): FileVerification {
  const outcome = 'could not tell';
  const code = codeOf(thrown) ?? 'UNEXPECTED_ERROR';
  const message = maskSecrets(messageOf(thrown));
  const { remedy } = thrown instanceof ServiceError ? thrown : {};
  const hint = remedy !== undefined && !message.includes(remedy) ? [remedy] : [];
  return {
    output: json ? [printableJson({ outcome, error: { code, message } })] : [],
    errors: [`${message} [${code}]`, ...hint].map((line) => printable(line)),
    isValid: undefined,
  };
}
