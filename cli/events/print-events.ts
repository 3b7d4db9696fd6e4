import { createClient, FetchError } from '../../client/create-client';
import { isSafeUrl } from '../../receiver/fetch-events';
import { ServiceError } from '../../service/base/errors';
import { readSettings } from '../../service/config/config';
import { settingOf } from '../../service/config/settings';
import { print, printEntry, tell, tellWhole, type Answer } from '../answer';
import { invalid } from '../errors';

/** The options of `tdoc events`. */
export interface PrintEventsOptions {
  follow?: true;
  after?: string;
  url?: string;
  json?: true;
}

/** Prints the events of a running service as they come, until all are printed, or until Ctrl-C. */
export async function printEvents({ follow, after, url, json }: PrintEventsOptions): Promise<Answer> {
  if (url !== undefined && !isSafeUrl(url))
    throw invalid(
      '--url is not an https URL without user and password (http is accepted for this machine only).',
      'Set it to an address such as https://trade.example.com.',
    );
  const { settings } = readSettings();
  // The key of this service goes to no other.
  const ownKey = url === undefined ? settingOf(settings, 'ADMIN_API_KEY') : undefined;
  const key = settingOf(settings, 'RECEIVER_API_KEY') ?? ownKey;
  const host = settingOf(settings, 'HOST').replace(/^(0\.0\.0\.0|::)$/, 'localhost');
  const address = `${host.includes(':') ? `[${host}]` : host}:${settingOf(settings, 'PORT')}`;
  const client = createClient({ url: url ?? `http://${address}`, key });
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  const onProblem = ({ reason }: { reason: string }): void => tell(reason);
  const events = client.events({ after, follow: follow === true, signal: stop.signal, onProblem });
  let last: string | undefined;
  try {
    for await (const { body, cursor } of events) {
      const event = body === undefined ? undefined : (JSON.parse(body) as Printed);
      if (event && json) printEntry({ cursor, event });
      else if (event) print([event.time, event.type, event.id, ofToken(event)].join('  ').trimEnd());
      last = cursor;
    }
  } catch (thrown) {
    if (!(thrown instanceof FetchError)) throw thrown;
    last = thrown.cursor ?? last;
    throw new ServiceError('EVENTS_REFUSED', `${thrown.code}: ${thrown.message}`, { cause: thrown });
  } finally {
    const place = url === undefined ? '' : ` --url ${url}`;
    if (last !== undefined) tellWhole(`To go on: npx tdoc events --follow${place} --after ${last}`);
  }
  return { lines: [], json: [], isJsonLines: true, isYes: true };
}

interface Printed {
  id: string;
  type: string;
  time: string;
  subject?: string;
}

function ofToken({ subject }: Printed): string {
  return subject === undefined ? '' : `subject ${subject}`;
}
