import { expect } from 'chai';
import type { Session } from '../../../service/console/views';

/** The paths that are for the page alone. */
export const API = '/console/api';

/** An answer of the service. `code`: of X-Error-Code. */
export interface ConsoleAnswer<Body> {
  status: number;
  code: string | null;
  headers: Headers;
  body: Body;
}

/** A page of the console, as a browser would be one: it keeps its cookie, and sends its origin. */
export interface ConsolePage {
  cookie: string;
  call<Body = { error: { message: string } }>(
    this: void,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ConsoleAnswer<Body>>;
  /** Logs in with a key. */
  logIn(this: void, key: string): Promise<ConsoleAnswer<Session>>;
}

/** Opens a page that is not logged in. */
export function openConsolePage(serviceUrl: string, cookie = ''): ConsolePage {
  const page: ConsolePage = {
    cookie,
    async call(method, path, body, headers = {}) {
      const response = await fetch(serviceUrl + path, {
        method,
        headers: {
          Origin: new URL(serviceUrl).origin,
          ...(page.cookie !== '' && { Cookie: page.cookie }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const isPrivate = path.startsWith(API);
      const hasSession = page.cookie !== '' && !headers.Authorization?.startsWith('Bearer');
      const isOfPage = isPrivate || hasSession;
      if (isOfPage) expect(response.headers.get('Cache-Control')).to.equal('no-store');
      expect(response.headers.get('Access-Control-Allow-Origin')).to.equal(isPrivate ? null : '*');
      expect(response.headers.get('X-Content-Type-Options')).to.equal(isOfPage ? 'nosniff' : null);
      expect(response.headers.get('Referrer-Policy')).to.equal(isOfPage ? 'no-referrer' : null);
      const [set] = response.headers.getSetCookie();
      if (set !== undefined) page.cookie = set.split(';')[0] ?? '';
      const text = await response.text();
      return {
        status: response.status,
        code: response.headers.get('X-Error-Code'),
        headers: response.headers,
        body: (text === '' ? undefined : JSON.parse(text)) as never,
      };
    },
    logIn: (key) => page.call<Session>('POST', `${API}/session`, { key }),
  };
  return page;
}
