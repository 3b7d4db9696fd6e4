import * as z from 'zod';
import { REGISTRY_REQUEST } from '../../followed-registries/parse-registry';
import { FEED } from './discovery';
import { chapter, json, OF_DATABASE, OF_REGISTRY } from './operation';
import { FORCE_QUERY } from './subscriptions';
import { component, ADDRESS, COUNT, TEXT } from '../../answers/views';
import { located } from './values';

const REGISTRY = component('Registry', {
  network: TEXT,
  chainId: COUNT,
  address: ADDRESS,
  origin: z.enum(['settings', 'api']),
  startBlock: COUNT.optional(),
  confirmations: REGISTRY_REQUEST.shape.confirmations,
  undelivered: COUNT.describe('Events that are not delivered yet.'),
  feed: FEED.pick({ state: true, nextBlock: true, headBlock: true, code: true, reason: true })
    .partial()
    .describe('The reading of its events.'),
});

const LOCATION = located('/registries/80002/0xd8058efe0198ae9dd7d563e1b4938dcbc86a1f81');

/** Operations of registries. */
export const REGISTRIES = chapter('Registries', 'admin', {
  listRegistries: {
    request: 'GET /registries',
    summary: 'List the followed registries',
    answers: {
      200: json('Every followed registry.', component('Registries', { registries: z.array(REGISTRY) })),
    },
  },
  addRegistry: {
    request: 'POST /registries',
    summary: 'Follow a registry',
    description: 'The service checks the registry against its chain, and then delivers its events.',
    body: {
      kind: 'small',
      schema: REGISTRY_REQUEST.meta({ id: 'RegistryRequest' }),
      examples: {
        'of a local chain': { network: 31337, address: '0xd8058efe0198ae9dd7d563e1b4938dcbc86a1f81' },
      },
    },
    answers: {
      200: json('The registry was followed already.', REGISTRY, { headers: LOCATION }),
      201: json('The registry is followed from now on.', REGISTRY, { headers: LOCATION }),
    },
    errors: {
      400: [...OF_REGISTRY, 'CHAIN_ID_MISMATCH', 'FINALITY_UNSUPPORTED', 'NETWORK_NOT_CONFIGURED'],
      409: ['REGISTRY_FOLLOWED'],
      503: ['RPC_UNREACHABLE', 'RPC_KEY_REFUSED', 'FINALITY_MISSING', ...OF_DATABASE],
    },
  },
  removeRegistry: {
    request: 'DELETE /registries/{chainId}/{address}',
    summary: 'Give a registry up',
    description: 'Its undelivered events stay in the database until it is added again.',
    pathParameters: {
      chainId: { description: 'The chain id.', example: '80002' },
      address: {
        description: 'The address of the registry.',
        example: '0xd8058efe0198ae9dd7d563e1b4938dcbc86a1f81',
      },
    },
    query: FORCE_QUERY,
    answers: {
      200: json(
        'The registry is not followed any more.',
        component('RemovedRegistry', { chainId: COUNT, address: TEXT, undelivered: COUNT }),
      ),
    },
    errors: { 404: ['REGISTRY_UNKNOWN'], 409: ['REGISTRY_IN_SETTINGS', 'REGISTRY_HAS_UNDELIVERED'] },
  },
});
