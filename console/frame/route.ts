import type { Session } from '../../service/console/views';

/** The pages, in the order of the navigation. `may`: what a key with a scope needs for it. */
export const PAGES = [
  { name: 'overview', title: 'Overview' },
  { name: 'issue', title: 'Issue' },
  { name: 'token', title: 'Token', may: 'read' },
  { name: 'deliveries', title: 'Deliveries', may: 'read' },
  { name: 'subscriptions', title: 'Subscriptions', may: 'subscribe' },
  { name: 'keys', title: 'Keys' },
  { name: 'verify', title: 'Verify' },
] as const;

/** The pages of a session. The service refuses a holder the others. */
export function pagesOf({ holder }: Session): readonly (typeof PAGES)[number][] {
  return PAGES.filter((page) => !holder || ('may' in page && holder.may.includes(page.may)));
}

export type PageName = (typeof PAGES)[number]['name'] | 'events';

/** The page that the hash of the address names. */
export interface Route {
  page: PageName;
  /** An event's id; empty on other pages. */
  id: string;
  query: Readonly<Record<string, string>>;
}

/** Reads `#/deliveries?state=dead`. An unknown page is the overview. */
export function routeOf(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [name = '', id = ''] = path.split('/').map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (name === 'events' && id !== '') return { page: 'events', id, query };
  const page = PAGES.find((known) => known.name === name)?.name ?? 'overview';
  return { page, id: '', query };
}

/** The hash of a page. Empty values are left out. */
export function hrefOf(page: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  return `#/${page}${search.size > 0 ? `?${search.toString()}` : ''}`;
}

/** A link that logs in once: `#link=TOKEN`, or `#link=TOKEN&to=token?id=…` with the page to go to. */
export function linkOf(hash: string): { token: string; href: string } | undefined {
  const [, token, to = 'overview'] = /^#link=([^&]+)(?:&to=(.+))?$/.exec(hash) ?? [];
  return token === undefined ? undefined : { token, href: `#/${to}` };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
