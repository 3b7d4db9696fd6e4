import { useLayoutEffect, useState } from 'preact/hooks';
import { linkOf, routeOf, type Route } from './route';

/**
 * Shows a page, at once: the browser tells of the new address later, and an update of the page in between
 * would show the former choice in a field again.
 */
export function goTo(href: string): void {
  location.hash = href;
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** Changes the address without a step back to the former one. Browsers do not tell of a script's change. */
export function replaceAddress(href: string): void {
  history.replaceState(null, '', href);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** The page of the address, as it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  // An effect after the next frame would miss an address that changes before it.
  useLayoutEffect(() => {
    const change = (): void => {
      if (linkOf(location.hash) === undefined) setRoute(routeOf(location.hash));
    };
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}
