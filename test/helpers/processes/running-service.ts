import { Writable } from 'node:stream';
import { type ReplacedParts, startApp } from '../../../service/composition/app';
import { loadConfig } from '../../../service/config/config';
import { createLogger } from '../../../service/base/logger';
import { secretMasker } from '../../../service/base/mask-secrets';
import { owned } from '../resources';
import { settled } from '../virtual-time';

/** A line of the service's log. */
export type LogLine = Record<string, unknown> & { msg?: string };

/** The service, started in this process through its composition root. */
export interface RunningService extends AsyncDisposable {
  url: string;
  log: LogLine[];
  stop(): Promise<void>;
}

/** Starts the service with exactly these settings, on a free port. */
export async function startService(
  settings: Record<string, string>,
  replaced: ReplacedParts = {},
): Promise<RunningService> {
  const config = loadConfig({ PORT: '0', ...settings });
  const log: LogLine[] = [];
  const destination = new Writable({
    write(line: Buffer, _encoding, done) {
      log.push(JSON.parse(line.toString()) as LogLine);
      done();
    },
  });
  const logger = createLogger({ level: 'debug', mask: secretMasker(config.secrets), destination });
  const { time } = replaced;
  const app = await settled(time, startApp(config, logger, replaced));
  const { url } = app;
  return owned(`service on ${url}`, { url, log, stop: () => settled(time, app.stop()) }, 'stop');
}
