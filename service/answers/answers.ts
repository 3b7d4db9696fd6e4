import { getAddress } from 'ethers';
import { sql, type Kysely } from 'kysely';
import type { Holder } from '../access/access-keys';
import { type Time, timeAt, untilAborted } from '../base/time';
import { traceIdOf } from '../base/trace';
import { ChainError, codeOf, ConfigurationError, RequestError } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { createSemaphore } from '../base/semaphore';
import { registryName, type RegistryName } from '../base/registry-name';
import { networkOfChain } from '../chain/networks';
import type { Config } from '../config/config';
import type { Schema } from '../database/schema';
import { RETRACTED_TYPE, type CloudEvent } from '../events/cloud-event';
import { compileSelection } from '../events/select-events';
import { scopeName, type JournalScope } from '../journal/issuance';
import { issuanceOf, issuancesIn } from '../journal/read-issuances';
import {
  deliveriesOfEvent,
  listDeliveries,
  listEvents,
  withDeliveriesOf,
  type DeliveriesPage,
  type DeliveriesWanted,
  type EventsWanted,
  type StoredEvent,
} from '../outbox/deliveries';
import { judgedBody } from '../outbox/stored-events';
import { readTokenState } from '../registry/read-token-state';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { reachRegistry, type NetworkNode } from '../registry/registry-contracts';
import { namesOfOwner } from '../subscriptions/stored-subscriptions';
import { readTokenHistory } from '../token/read-token-history';
import { isPlainAddress, type TokenLocation } from '../token/token-location';
import type { FollowedFeed } from '../watcher/feed-status';
import type { CheckingPool, JsonParts } from './checking-pool';
import { deliveryView, eventDetails, eventsByOperation, namesOf, type TargetOf } from './delivery-views';
import { tokenView } from './token-view';
import type { DeliveryView, EventDetails, EventNames, IssuingProgress, KnownToken } from './views';

/** The parts of the service that the answers come from. */
export interface AnswersParts {
  config: Pick<Config, 'network' | 'rpcUrls' | 'registries' | 'followedOf' | 'tokenRegistryAddress'>;
  db: Kysely<Schema>;
  feedOf(this: void, registry: RegistryName): FollowedFeed | undefined;
  targetOf: TargetOf;
  /** The scope of the documents that are issued; undefined if none are. */
  scope: JournalScope | undefined;
  checking: CheckingPool;
  time: Time;
}

/** A token. By default it is in the registry in which documents are issued. */
interface TokenPlace {
  tokenId: bigint;
  registry?: string | undefined;
  /** By default the chain of NET. */
  chainId?: number | undefined;
  /** The caller, if it sees a part. */
  holder?: Holder | undefined;
}

interface TokenQuestion extends TokenPlace {
  /** Decrypts the remarks. */
  credentialId?: string | undefined;
  /** Whether the caller may see the deliveries of its events. */
  seesDeliveries: boolean;
}

/**
 * The answers to what programs and the console ask. Undefined: there is no such thing. `left` aborts when the
 * caller has gone away: what waits for its turn is given up. `bytes`: a body as JSON.
 */
export interface Answers {
  /** @param tokenId 64 lower-case hexadecimal digits. */
  progress(this: void, tokenId: string): Promise<IssuingProgress | undefined>;
  /** The evidence of a token, without its document, as JSON. Undefined: it was not minted. */
  evidence(question: TokenPlace, left: AbortSignal): Promise<JsonParts | undefined>;
  token(question: TokenQuestion, left: AbortSignal): Promise<KnownToken | undefined>;
  deliveries(
    wanted: DeliveriesWanted,
    holder?: Holder,
  ): Promise<{ deliveries: (EventNames & DeliveryView)[]; next: DeliveriesPage['next'] }>;
  events(
    wanted: Pick<EventsWanted, 'tokenId' | 'from' | 'limit'>,
    holder?: Holder,
  ): Promise<{ events: (EventNames & { deliveries: DeliveryView[] })[]; next: number | undefined }>;
  event(eventId: string, holder?: Holder): Promise<EventDetails | undefined>;
  verify(this: void, bytes: Uint8Array, left: AbortSignal): Promise<JsonParts>;
  derive(this: void, bytes: Uint8Array, left: AbortSignal): Promise<JsonParts>;
}

/** Histories that are read at once: each may take a node many requests. */
const READING = { permits: 4, waiting: 20, waitMs: 30_000 };

export function createAnswers(parts: AnswersParts): Answers {
  const { config, db, feedOf, targetOf, scope, checking, time } = parts;
  const { hold: inTurn } = createSemaphore(time, READING, 'Too many tokens at once: try it again later.');

  async function progress(tokenId: string): Promise<IssuingProgress | undefined> {
    if (scope === undefined) return undefined;
    const feed = feedOf(registryName(scope.chainId, scope.registryAddress));
    return issuingProgress(db, scope, tokenId, feed?.status.headBlock);
  }

  /** The subscriptions of a holder. Undefined: the caller sees all. */
  const ownOf = async (holder: Holder | undefined) => holder && namesOfOwner(db, holder.owner);

  /** The events of a token, and the deliveries that the caller sees. Undefined: it sees no such token. */
  const eventsOfToken = async (holder: Holder | undefined, location: TokenLocation) => {
    const { chainId, registry, tokenId } = location;
    const wanted = { registry: registryName(chainId, registry), tokenId: tokenId.toString() };
    const { events } = await listEvents(db, wanted);
    // A token that a reorganisation took away from the caller is not seen any more.
    const standing = events.filter(({ type, isOrphaned }) => !isOrphaned && type !== RETRACTED_TYPE);
    if (!isSeenBy(holder, standing)) return undefined;
    const own = await ownOf(holder);
    return events.map((event) => withDeliveriesOf(own, event));
  };

  return {
    progress,
    async evidence(question, left) {
      const location = locationOf(question, config);
      const { holder } = question;
      if (holder && (await eventsOfToken(holder, location)) === undefined) return undefined;
      try {
        return await checking.evidence(nodeOfCaller(config, location), location, left);
      } catch (thrown) {
        if (codeOf(thrown) === 'TOKEN_NOT_MINTED') return undefined;
        throw question.registry === undefined ? thrown : ofCaller(thrown, location);
      }
    },

    async token(question, left) {
      const { holder, seesDeliveries } = question;
      const location = locationOf(question, config);
      if (holder && (await eventsOfToken(holder, location)) === undefined) return undefined;
      const node = nodeOfCaller(config, location);
      const { chainId, registry, tokenId } = location;
      const history = await inTurn(left, () =>
        reachRegistry(time, node, registry, ({ client, bulkClient, registry: found }) =>
          // Reading a long history ends when the caller leaves: the clients are then closed.
          untilAborted(left, readTokenHistory(client, found, tokenId, { bulkClient })),
        ),
      ).catch((thrown: unknown) => {
        throw question.registry === undefined ? thrown : ofCaller(thrown, location);
      });
      const view = tokenView(location, history, {
        network: node.network.name,
        credentialId: question.credentialId,
      });
      const isOwn = scope?.chainId === chainId && isSame(scope.registryAddress, registry);
      const issuing = isOwn && !holder ? await progress(tokenIdHexOf(tokenId)) : undefined;
      if (history.state.state === 'not minted' && issuing === undefined) return undefined;
      const known = await eventsOfToken(holder, location);
      if (known === undefined) return undefined;
      const eventsOf = eventsByOperation(known, seesDeliveries);
      return {
        ...view,
        explorerUrl: node.network.explorerUrl ?? null,
        // The events of a transaction are beside the first of its operations. It nearly always has only one.
        endorsements: view.endorsements.map((one, index) => ({
          ...one,
          events: view.endorsements[index - 1]?.transactionHash === one.transactionHash ? [] : eventsOf(one),
        })),
        issuing: issuing ?? null,
      };
    },

    async deliveries(wanted, holder) {
      const { deliveries, next } = await listDeliveries(db, { ...wanted, own: await ownOf(holder) });
      const shown = deliveries.map(({ event, delivery }) => ({
        ...namesOf(event),
        ...deliveryView(delivery),
      }));
      return { deliveries: shown, next };
    },

    async events(wanted, holder) {
      const { events, next } = await listEvents(db, { ...wanted, own: await ownOf(holder) });
      const shown = events.map((event) => ({
        ...namesOf(event),
        deliveries: event.deliveries.map(deliveryView),
      }));
      return { events: shown, next };
    },

    async event(eventId, holder) {
      const [event] = await deliveriesOfEvent(db, eventId);
      if (event === undefined || !isSeenBy(holder, [event])) return undefined;
      const own = await ownOf(holder);
      return eventDetails(db, targetOf, withDeliveriesOf(own, event), time.now());
    },

    verify: (bytes, left) =>
      checking.verify(bytes, left, async (location, lookedUp) => {
        const node = nodeOf(config, location);
        lookedUp.push(...node.urls.map(printableUrl));
        return reachRegistry(time, node, location.registry, ({ client, registry }) =>
          readTokenState(client, registry.contracts, location.tokenId),
        );
      }),

    derive: checking.derive,
  };
}

type Nodes = AnswersParts['config'];

/** Whether one of these events is in the caller's scope. */
function isSeenBy(holder: Holder | undefined, events: readonly StoredEvent[]): boolean {
  if (holder === undefined) return true;
  const selects = compileSelection({ filters: holder.filters });
  return events.some((event) => {
    const body = judgedBody(event);
    return body !== null && selects(JSON.parse(body) as CloudEvent);
  });
}

/** @throws RequestError QUERY_INVALID. */
function locationOf(
  { tokenId, registry, chainId, holder }: TokenPlace,
  { network, tokenRegistryAddress, ...config }: Nodes,
): TokenLocation {
  const address = registry ?? (chainId === undefined ? tokenRegistryAddress : undefined);
  if (address !== undefined && isPlainAddress(address))
    return { chainId: chainId ?? network.chainId, registry: getAddress(address), tokenId };
  // It is not in every scope.
  const [followed] = holder ? [] : config.registries;
  const problem =
    address === undefined
      ? 'is missing'
      : 'must be an address: 0x and 40 hexadecimal digits, with a right checksum or in lower case';
  const remedy =
    followed && `, for example ?registry=${followed.address}&chainId=${followed.network.chainId}`;
  throw new RequestError('QUERY_INVALID', `The parameter registry ${problem}${remedy ?? ''}.`);
}

const REGISTRY_PROBLEMS: Readonly<Record<string, string>> = {
  REGISTRY_MISSING: 'names an address without a contract',
  REGISTRY_INVALID: 'names a contract that is not a token registry',
  ESCROWS_UNSUPPORTED: 'names a registry whose title escrows are not those of version 5',
};

/** A problem of the registry that the caller named, with the caller's remedy; any other error as it is. */
function ofCaller(thrown: unknown, { chainId, registry }: TokenLocation): unknown {
  const problem = thrown instanceof ChainError ? REGISTRY_PROBLEMS[thrown.code] : undefined;
  if (!(thrown instanceof ChainError) || problem === undefined) return thrown;
  const found = `${registry} on chain ${chainId}`;
  const message = `The parameter registry ${problem}: ${found}. Correct registry, or chainId.`;
  return new RequestError(thrown.code, message, { cause: thrown });
}

/** @throws RequestError NETWORK_NOT_CONFIGURED. */
function nodeOfCaller(config: Nodes, location: TokenLocation): NetworkNode {
  try {
    return nodeOf(config, location);
  } catch (thrown) {
    if (!(thrown instanceof ConfigurationError)) throw thrown;
    throw new RequestError('NETWORK_NOT_CONFIGURED', thrown.message, { cause: thrown });
  }
}

/**
 * The node at which a registry is read: that of the registry, if it is followed, or another of its chain.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, or CONFIGURATION_INVALID without the key of the network's node.
 */
function nodeOf(
  config: Nodes,
  { chainId, registry: address }: { chainId: number; registry: string },
): NetworkNode {
  const network = networkOfChain(chainId);
  const followed = config.registries.filter((one) => one.network.chainId === chainId);
  const found = followed.find((one) => isSame(one.address, address)) ?? followed[0];
  if (found !== undefined) return { network, urls: found.rpcUrls };
  if (config.network.chainId === chainId) return { network, urls: config.rpcUrls };
  return { network, urls: config.followedOf({ network, address }).rpcUrls };
}

function isSame(address: string, other: string): boolean {
  return address.toLowerCase() === other.toLowerCase();
}

/**
 * Undefined: the document was not issued here.
 *
 * @param headBlock the chain's newest block, if it is known.
 */
export async function issuingProgress(
  db: Kysely<Schema>,
  scope: JournalScope,
  tokenId: string,
  headBlock: number | undefined,
): Promise<IssuingProgress | undefined> {
  const row = await issuancesIn(db, scopeName(scope))
    .select(
      sql<number | null>`(select mint.signed_at from mint_transactions mint where mint.hash = tx_hash
        and mint.scope = issuances.scope and mint.token_id = issuances.token_id)`.as('sent_at'),
    )
    .where('token_id', '=', tokenId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { state, createdAt, blNumber = null, txHash = null, failure = null } = issuanceOf(row);
  const block = row.block_number;
  const confirmedBlocks = block === null || headBlock === undefined ? null : Math.max(0, headBlock - block);
  const timeOf = (time: number | null): string | null => (time === null ? null : timeAt(time));
  return {
    ...{ tokenId, blNumber, state, createdAt: timeAt(createdAt), txHash, confirmedBlocks, failure },
    traceId: traceIdOf(row.trace) ?? null,
    receivedAt: timeOf(row.received_at),
    signingAt: timeOf(row.signing_at),
    signedAt: timeOf(row.signed_at),
    sentAt: timeOf(row.sent_at),
    minedAt: timeOf(row.mined_at),
  };
}
