import { useEffect, useState } from 'preact/hooks';
import { linkOf, routeOf, type Route } from './route';

/** The page of the address, as it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const change = (): void => {
      if (linkOf(location.hash) === undefined) setRoute(routeOf(location.hash));
    };
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}
