import Koa from 'koa';
import type { AccessKeys } from '../access/access-keys';
import type { WalletLogin } from '../access/wallet-login';
import type { Answers } from '../answers/answers';
import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import type { Logger } from '../base/logger';
import type { Registries } from '../followed-registries/registries';
import { answerConsole, type Console } from './console-routes';
import { cors, createGate } from './gate';
import { errors, unanswered, wellFormed } from './errors';
import { requestLog, type RequestState } from './request-log';
import { callerLeft, limitCallers } from './limits';
import { createOperationRouter } from './operation-router';
import { answerDocuments, type DocumentParts } from './routes/documents';
import { answerKeys, answerLogins } from './routes/keys';
import { answerPublished, type PublishedParts } from './routes/published';
import { answerQuestions } from './routes/questions';
import { answerRegistries } from './routes/registries';
import { answerSubscriptions, type SubscriptionRoutes } from './routes/subscriptions';
import { createKeyRefusal } from './wrong-keys';

/** The parts of the HTTP API. */
export interface HttpAppOptions extends DocumentParts, PublishedParts {
  /** Without it the endpoints of the admin do not exist. */
  adminApiKey?: string | undefined;
  /** It may read all. */
  consoleReadKey?: string | undefined;
  /** Seals the positions of pages; 32 bytes. */
  pageKey: Uint8Array;
  /** The keys that see a part, which exist only with an admin key. */
  keys?: AccessKeys | undefined;
  /** The log-ins of wallets, which exist only with WALLET_LOGIN. */
  wallets?: WalletLogin | undefined;
  /** How many requests may wait for a document at once; undefined: any number. */
  callersAtOnce?: number | undefined;
  /** How many requests may wait for an event at once; a caller has half of them. */
  waitsAtOnce?: number | undefined;
  development: boolean;
  logger: Logger;
  mask: (text: string) => string;
  /** The followed registries, for the admin. */
  registries?: Registries | undefined;
  /** The paths under /subscriptions, which exist only with an admin key. */
  subscriptions?: SubscriptionRoutes | undefined;
  /** Tokens, deliveries, events and checks of credentials, which exist only with a key. */
  answers?: Answers | undefined;
  /** The console in the browser, which exists only with an admin key. */
  console?: Console | undefined;
  time: Time;
  lifecycle: Lifecycle;
  /** Whether what is stored now may be lost. */
  isDatabaseRemoved?: () => boolean;
}

/** The creator service's HTTP API (docs/specification.md, section 5). */
export function createHttpApp(options: HttpAppOptions): Koa<RequestState> {
  const { time, apiKey, adminApiKey, answers, registries, subscriptions } = options;
  const consoleParts = adminApiKey === undefined ? undefined : options.console;
  const refuseKey = createKeyRefusal(time);
  const { keys } = options;
  const secrets = { issuer: apiKey, admin: adminApiKey, reader: options.consoleReadKey };
  const gate = createGate({ secrets, keys, sessions: consoleParts?.sessions, refuseKey });
  const operations = createOperationRouter(time, gate, options.pageKey, options.isDatabaseRemoved);
  answerPublished(operations, options);
  const { callersAtOnce = Infinity, waitsAtOnce = Infinity } = options;
  answerDocuments(operations, options, limitCallers(callersAtOnce));
  if (keys) answerKeys(operations, keys);
  if (options.wallets) answerLogins(operations, options.wallets);
  if (registries) answerRegistries(operations, registries);
  if (subscriptions)
    answerSubscriptions(operations, subscriptions, limitCallers(waitsAtOnce, Math.ceil(waitsAtOnce / 2)));
  if (answers) answerQuestions(operations, answers, consoleParts?.overview);
  if (consoleParts) answerConsole(operations, { ...consoleParts, refuseKey, wallets: options.wallets });
  const app = new Koa<RequestState>();
  app.use(requestLog(time, options.lifecycle, options.logger));
  app.use(cors);
  app.use(errors(options));
  app.use(wellFormed);
  app.use(unanswered);
  app.use(callerLeft);
  app.use(operations.router.routes());
  app.use(operations.router.allowedMethods());
  // Called for errors that cannot be answered any more, as when the caller has disconnected.
  app.on('error', (error) => options.logger.warn({ error: error as unknown }, 'response failed'));
  return app;
}
