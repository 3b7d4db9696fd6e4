import { randomBytes } from 'node:crypto';
import { createClient, type components } from '../../../client/create-client';
import type { ReplacedParts } from '../../../service/composition/app';
import { createLocalSetup, type LocalSetup } from '../chain/local-setup';
import { newState, type Engine, type State } from '../database/engines';
import { eventually } from '../eventually';
import {
  startRecordingReceiver,
  type Delivery,
  type RecordingReceiver,
} from '../receiver/recording-receiver';
import { callService, type ApiAnswer } from './create-call';
import type { VirtualTime } from '../virtual-time';
import { healthOf } from './health-and-metrics';
import { startService, type RunningService } from './running-service';

/** A subscription as the API shows it. */
export type ShownSubscription = components['schemas']['Subscription'];

/** A service whose API manages subscriptions, a chain, and the sinks of the test. */
export interface SubscribedService {
  local: LocalSetup;
  state: State;
  settings: Record<string, string>;
  /** The receiver of WEBHOOK_URL. */
  ofSettings: RecordingReceiver;
  readonly service: RunningService;
  call<Body = Record<string, never>>(
    this: void,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiAnswer<Body>>;
  /** A new sink. */
  sink(this: void): Promise<RecordingReceiver>;
  /** Makes a subscription with these members besides `sink` and `protocol`. */
  subscribe(this: void, sink: { url: string }, members?: object): Promise<ShownSubscription>;
  /** Waits until the service has read the chain to its end. */
  caughtUp(this: void): Promise<void>;
  /** Ends the service, runs `meanwhile`, and starts the service with other settings. */
  restart(
    this: void,
    changed?: Record<string, string>,
    meanwhile?: () => Promise<unknown>,
    replaced?: ReplacedParts,
  ): Promise<void>;
}

export const ADMIN_API_KEY = 'the-admin-key-of-these-tests-0123456789';

/** Starts it, in real time by default. Undefined if the engine is not installed. */
export function startSubscribedService(
  engine: 'SQLite',
  own?: Record<string, string>,
  time?: VirtualTime,
): Promise<SubscribedService>;
export function startSubscribedService(
  engine: Engine,
  own?: Record<string, string>,
  time?: VirtualTime,
): Promise<SubscribedService | undefined>;
export async function startSubscribedService(
  engine: Engine,
  own: Record<string, string> = {},
  time?: VirtualTime,
): Promise<SubscribedService | undefined> {
  const state = await newState(engine);
  if (state === undefined) return undefined;
  const local = await createLocalSetup(own.DOMAIN === undefined ? {} : { domain: own.DOMAIN });
  const sink = (): Promise<RecordingReceiver> => startRecordingReceiver(local.publicKeyFile);
  const ofSettings = await sink();
  const settings: Record<string, string> = {
    ...local.settings,
    ...state.settings,
    ADMIN_API_KEY,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_URL: ofSettings.url,
    // Without a wallet no signing threads start, which take a second of processor time.
    WALLET_PRIVATE_KEY: '',
    ...own,
  };
  const inTime = time && { time };
  let service = await startService(settings, inTime);

  const call: SubscribedService['call'] = async (method, path, body, headers = {}) =>
    callApi(service.url, method, path, body, headers);
  return {
    local,
    state,
    settings,
    ofSettings,
    get service() {
      return service;
    },
    call,
    sink,
    async subscribe({ url }, members = {}) {
      const client = createClient({ url: service.url, key: ADMIN_API_KEY });
      const body: components['schemas']['SubscriptionRequest'] = { sink: url, protocol: 'HTTP', ...members };
      const { data, error, response } = await client.POST('/subscriptions', { body });
      if (data === undefined) throw new Error(`${response.status}: ${error.error.message}`);
      return data;
    },
    async caughtUp() {
      const head = await local.client.getBlockNumber();
      const isRead = async (): Promise<boolean> => {
        const { feeds } = await healthOf(service.url);
        return feeds.length > 0 && feeds.every(({ nextBlock }) => nextBlock > head);
      };
      const what = 'everything is read';
      await (time === undefined ? eventually(what, isRead) : time.until(what, isRead));
    },
    async restart(changed = {}, meanwhile = async () => undefined, replaced = inTime) {
      await service.stop();
      await meanwhile();
      service = await startService({ ...settings, ...changed }, replaced);
    },
  };
}

/** Asks the API of a service as the operator. */
export async function callApi<Body>(
  serviceUrl: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiAnswer<Body>> {
  const key = { authorization: `Bearer ${ADMIN_API_KEY}` };
  return callService(method, `${serviceUrl}${path}`, body, { ...key, ...headers });
}

/** Type and token of each event that arrived, in order, without the types' common beginning. */
export function arrivedAt({ deliveries }: RecordingReceiver): string[] {
  return deliveries.map(({ event }) => brief(event));
}

function brief({ type, subject }: Delivery['event']): string {
  return `${type.replace('com.service.etr.', '')} ${subject}`;
}
