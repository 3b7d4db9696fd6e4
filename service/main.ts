import { startApp } from './composition/app';
import { envFileOf, knownSecrets, loadConfig, type Config } from './config/config';
import { reachDistantHosts } from './base/distant-hosts';
import { ServiceError, messageOf, orUndefined } from './base/errors';
import { createLogger, type Logger } from './base/logger';
import { secretMasker } from './base/mask-secrets';
import { rememberChecksums } from './base/checksums';
import { systemTime } from './base/time';
import { commandHint } from './config/tenant';

/** Time for requests and deliveries in flight to finish after a signal. */
const STOP_WITHIN_MS = 10_000;

/** The text that `--help` prints. */
const HELP = `\
Issues transferable documents over HTTP, and delivers the events of their registry to webhooks.

Usage: npx tdoc service
       ENV_FILE=tenants/acme.env npx tdoc service

It takes no arguments. Settings are environment variables, or lines of .env; the environment wins:

  DOMAIN                   domain of the issuer's did:web
  NET                      chain id or name of the network: 31337, amoy, ...
  RPC_URL                  node to use, instead of the network's
  WALLET_PRIVATE_KEY       wallet that mints; or WALLET_SIGNER_URL, or WALLET_PKCS11_KEY
  TOKEN_REGISTRY_ADDRESS   written by: npx hardhat deploy
  DID_KEY_PAIRS            written by: npx tdoc setup; or DID_PKCS11_KEY
  SIGNING_PRIVATE_KEY      written by: npx tdoc setup
  WEBHOOK_URL              where events are delivered
  API_KEY                  key that callers of POST /create must send
  ADMIN_API_KEY            key of the API of subscriptions and of the console
  CONSOLE_READ_KEY         key that logs in to the console to look only
  HOST, PORT               listening address: 127.0.0.1, 3000
  DATA_DIR                 folder of the embedded database: .data
  DATABASE_URL             PostgreSQL, instead of the embedded database
  ENV_FILE                 another file than .env

docs/settings.md has all of them. Ctrl-C stops the service; the next start delivers the remaining events.
`;

async function main(): Promise<void> {
  reachDistantHosts();
  const argument = process.argv[2];
  if (argument === '--help' || argument === '-h') return void process.stdout.write(HELP);
  if (argument !== undefined) fail(`Unknown argument ${argument}: see --help for the settings.`);
  const config = readConfig();
  const mask = secretMasker(config.secrets);
  const logger = createLogger({ level: config.logLevel, mask });
  const hint = commandHint(config.envFile);
  if (hint !== undefined) logger.info(hint);
  for (const warning of config.warnings) logger.warn(warning);
  endOnUnexpected(logger);
  rememberChecksums();
  const starting = startApp(config, logger);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // A start must be complete before it can be stopped.
    process.once(signal, () => void stop(signal, async () => (await starting).stop(), logger));
  }
  const app = await starting.catch((error: unknown) => {
    fail(
      mask(`${messageOf(error)}${error instanceof ServiceError ? ` [${error.code}]` : ''}`),
      error instanceof ServiceError ? undefined : mask(String((error as Error).stack)),
    );
  });
  logger.info(
    {
      url: app.url,
      envFile: config.envFile,
      network: config.network.name,
      registry: config.tokenRegistryAddress,
    },
    'listening',
  );
}

/**
 * Ends the process after an uncaught error. Node.js would print the error without the logger, and so without
 * masking secrets.
 */
function endOnUnexpected(logger: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      logger.fatal({ error }, `ended by an unexpected error: ${messageOf(error)}`);
      process.exit(1);
    });
  }
}

function readConfig(): Config {
  try {
    return loadConfig();
  } catch (error) {
    // None when ENV_FILE cannot be read; the message has no values of it then.
    const secrets = orUndefined(() => knownSecrets()) ?? [];
    fail(secretMasker(secrets)(messageOf(error)));
  }
}

async function stop(signal: string, stopApp: () => Promise<void>, logger: Logger): Promise<void> {
  logger.info({ signal }, 'stopping');
  systemTime.later(STOP_WITHIN_MS, () => {
    logger.warn(
      'not everything finished in time: open requests are cut off, ' +
        'and deliveries continue after the next start',
    );
    process.exit(0);
  });
  await stopApp();
  logger.info('stopped');
  process.exit(0);
}

/** Prints plain text instead of a log line, because an operator watches the terminal during a start. */
function fail(message: string, stack?: string): never {
  const lines = ['The service cannot start.', message, commandHint(envFileOf()), stack];
  process.stderr.write(lines.flatMap((line) => (line === undefined ? [] : `${line}\n`)).join(''));
  process.exit(1);
}

void main();
