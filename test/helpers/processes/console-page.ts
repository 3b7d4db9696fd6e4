import { expect } from 'chai';
import type { Session } from '../../../service/console/views';
import { callService, type ApiAnswer } from './create-call';

/** The paths that are for the page alone. */
export const API = '/console/api';

/** A page of the console, as a browser would be one: it keeps its cookie, and sends its origin. */
export interface ConsolePage {
  cookie: string;
  call<Body = { error: { message: string } }>(
    this: void,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiAnswer<Body>>;
  /** Logs in with a key. */
  logIn(this: void, key: string): Promise<ApiAnswer<Session>>;
}

/** Opens a page that is not logged in. */
export function openConsolePage(serviceUrl: string, cookie = ''): ConsolePage {
  const page: ConsolePage = {
    cookie,
    async call(method, path, body, headers = {}) {
      const own = { Origin: new URL(serviceUrl).origin, ...(page.cookie !== '' && { Cookie: page.cookie }) };
      const answer = await callService<never>(method, serviceUrl + path, body, { ...own, ...headers });
      const isPrivate = path.startsWith(API);
      const hasSession = page.cookie !== '' && !headers.Authorization?.startsWith('Bearer');
      const isOfPage = isPrivate || hasSession;
      if (isOfPage) expect(answer.headers.get('Cache-Control')).to.equal('private, no-store');
      expect(answer.headers.get('Access-Control-Allow-Origin')).to.equal(isPrivate ? null : '*');
      expect(answer.headers.get('X-Content-Type-Options')).to.equal(isOfPage ? 'nosniff' : null);
      expect(answer.headers.get('Referrer-Policy')).to.equal(isOfPage ? 'no-referrer' : null);
      const [set] = answer.headers.getSetCookie();
      if (set !== undefined) page.cookie = set.split(';')[0] ?? '';
      return answer;
    },
    logIn: (key) => page.call<Session>('POST', `${API}/session`, { key }),
  };
  return page;
}
