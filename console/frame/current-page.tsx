import { useEffect, useErrorBoundary } from 'preact/hooks';
import { DeliveriesPage } from '../deliveries/deliveries-page';
import { EventPage } from '../deliveries/event-page';
import { IssuePage } from '../issuing/issue-page';
import { FailureNotice } from '../parts/feedback';
import { failureFrom } from '../requests/request';
import { OverviewPage } from '../overview/overview-page';
import { SubscriptionsPage } from '../subscriptions/subscriptions-page';
import { TokenPage } from '../token/token-page';
import { VerifyPage } from '../verifying/verify-page';
import { PAGES, type Route } from './route';

/** Digits of an id that tell one tab from another. */
const TITLE_DIGITS = 8;

/** The page of the address. */
export function CurrentPage({ route }: { route: Route }) {
  const { page, id, query } = route;
  useEffect(() => {
    const title = PAGES.find(({ name }) => name === page)?.title ?? 'Event';
    const digits = (id || (query.id ?? '')).slice(0, TITLE_DIGITS);
    document.title = `${`${title} ${digits}`.trim()} – Console`;
  }, [page, id, query.id]);
  const error: unknown = useErrorBoundary()[0];
  if (error !== undefined) return <FailureNotice failure={failureFrom(error)} />;
  return <PageOf route={route} />;
}

function PageOf({ route: { page, id, query } }: { route: Route }) {
  switch (page) {
    case 'overview':
      return <OverviewPage />;
    case 'issue':
      return <IssuePage />;
    case 'token':
      return <TokenPage query={query} />;
    case 'deliveries':
      return <DeliveriesPage query={query} />;
    case 'events':
      return <EventPage id={id} />;
    case 'subscriptions':
      return <SubscriptionsPage />;
    case 'verify':
      return <VerifyPage />;
  }
}
