import pino from 'pino';
import { createLogger, type Logger } from '../service/base/logger';
import { secretMasker } from '../service/base/mask-secrets';

/** The service's logger at its default level. It does all the work, and discards the lines. */
export function discardingLogger(): { logger: Logger; end(): void } {
  const destination = pino.destination({ dest: '/dev/null', sync: true });
  const mask = secretMasker(['not-a-secret', 'nor-this']);
  return { logger: createLogger({ level: 'info', mask, destination }), end: () => destination.end() };
}
