import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { TokenEvent } from '../../client/events';
import type { Facts, Overview, Session } from '../../service/console/views';
import type { IssuingState } from '../issuing/issuing-state';
import type { Api } from '../requests/api';
import type { SubscriptionDraft } from '../subscriptions/subscription-draft';

/** The values that every page gets. */
export interface ConsoleContext {
  api: Api;
  facts: Facts;
  session: Session;
  overview: Overview | undefined;
  /** Changes whenever data may have moved, and after a lost connection. */
  revision: string;
  /** Whether the service does not answer: the page shows what was known before. */
  isLost: boolean;
  /** The service's clock minus this one, in milliseconds. */
  clockOffset: number;
  /** Tells those who do not see the page what happened. */
  announce: (text: string) => void;
  /** Reads the last event of each token of a holder. It goes on where it was. */
  readTokens: (signal: AbortSignal) => Promise<readonly TokenEvent[]>;
  /** The document that is being issued, which stays while other pages are visited. */
  issuing: IssuingState;
  /** The newest thing that was created. */
  created: Created | undefined;
  setCreated: (created: Created | undefined) => void;
  /** The form of a new subscription, which outlasts the session. Undefined: it is closed. */
  subscriptionDraft: SubscriptionDraft | undefined;
  setSubscriptionDraft: (draft: SubscriptionDraft | undefined) => void;
}

/** A subscription or a key. Its secret is shown once. */
export interface Created {
  noun: string;
  name: string;
  secret?: { what: string; value: string } | undefined;
}

const Context = createContext<ConsoleContext | undefined>(undefined);

export const ConsoleProvider = Context.Provider;

export function useConsole(): ConsoleContext {
  const found = useContext(Context);
  if (!found) throw new Error('Pages are shown within ConsoleProvider.');
  return found;
}

/** Tells those who do not see the page what happened; before the log-in, nobody listens. */
export function useAnnouncer(): Pick<ConsoleContext, 'announce'> {
  return useContext(Context) ?? { announce: () => undefined };
}

/** Whether this session may change things. */
export function useMayChange(): boolean {
  const { role, holder } = useConsole().session;
  return role === 'operator' || holder?.may.includes('subscribe') === true;
}
