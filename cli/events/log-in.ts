import { createClient } from '../../client/create-client';
import { loginMessage } from '../../client/login-message';
import { isSafeUrl } from '../../receiver/fetch-events';
import {
  ConfigurationError,
  connectionProblem,
  meaningOf,
  ServiceError,
  type ErrorCode,
} from '../../service/base/errors';
import { isThisMachine } from '../../service/base/sink-rules';
import { systemTime, timeAt } from '../../service/base/time';
import { readSettings } from '../../service/config/config';
import { walletKeyOf } from '../../service/config/key-settings';
import { settingOf } from '../../service/config/settings';
import { openWallet } from '../../service/keys/wallet';
import type { Answer } from '../answer';
import { invalid, Refusal } from '../errors';

/** The options of `tdoc login`. */
export interface LogInOptions {
  url: string;
  domain?: string;
  chainId?: number;
}

/**
 * Signs a message of EIP-4361 with the wallet, and prints the key that the service gives for it.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NOT_CONFIGURED; ServiceError SERVICE_UNREACHABLE; SignerError;
 *   Refusal with the code of the service.
 */
export async function logIn(options: LogInOptions): Promise<Answer> {
  const { url } = options;
  if (!isSafeUrl(url))
    throw invalid('--url is not an https URL without user and password.', 'Give the address of the service.');
  const { settings } = readSettings();
  const walletKey = walletKeyOf(settings);
  if (walletKey === undefined) {
    const remedy = 'Set it, or set WALLET_SIGNER_URL or WALLET_PKCS11_KEY.';
    throw new ConfigurationError('NOT_CONFIGURED', `WALLET_PRIVATE_KEY is missing. ${remedy}`, { remedy });
  }
  const wallet = openWallet(systemTime, walletKey);
  const client = createClient({ url: url.replace(/\/$/, '') });
  const { host, hostname } = new URL(url);
  const domain = options.domain ?? host;
  // Another service could pass on the nonce of that domain, and log in there.
  if (domain !== host && !isThisMachine(hostname))
    throw invalid('--domain is not the host of --url.', 'Give it only for a service on this machine.');
  const { nonce } = await answerOf(client.POST('/login/nonce'));
  if (!/^[A-Za-z\d]{8,}$/.test(nonce))
    throw new ServiceError('SERVICE_UNREACHABLE', 'The service gave no nonce. Correct --url.');
  const scheme = isThisMachine(new URL(`https://${domain}`).hostname) ? 'http' : 'https';
  const message = loginMessage({
    domain,
    uri: `${scheme}://${domain}`,
    address: wallet.address,
    chainId: options.chainId ?? settingOf(settings, 'NET').chainId,
    nonce,
    issuedAt: timeAt(systemTime.now()),
  });
  const signature = await wallet.signMessage(message);
  const made = await answerOf(client.POST('/login', { body: { message, signature } }));
  return {
    lines: [made.key],
    json: made,
    isYes: true,
    remarks: [
      `The key of ${made.name} ends at ${made.expiresAt}, and is shown this once.`,
      `To read its events: RECEIVER_API_KEY=<the key> npx tdoc events --follow --url ${url}`,
    ],
  };
}

interface Asked<Data> {
  data?: Data;
  error?: { error?: { message: string } };
  response: Response;
}

/** The content of the service's answer. */
async function answerOf<Data>(asking: Promise<Asked<Data>>): Promise<Data> {
  const { data, error, response } = await asking.catch((cause: unknown) => {
    const problem = connectionProblem(cause instanceof Error ? (cause.cause ?? cause) : cause);
    throw new ServiceError('SERVICE_UNREACHABLE', `The service does not answer: ${problem}.`, { cause });
  });
  if (data !== undefined) return data;
  const code = response.headers.get('X-Error-Code') ?? '';
  if (response.status === 404)
    throw new Refusal('LOGIN_REFUSED', 'The service has no log-ins. Let its operator set WALLET_LOGIN=true.');
  if (meaningOf(code) === undefined)
    throw new ServiceError('SERVICE_UNREACHABLE', `Something before the service answers ${response.status}.`);
  throw new Refusal(code as ErrorCode, String(error?.error?.message));
}
