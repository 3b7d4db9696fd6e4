import * as z from 'zod';
import { checksummed } from '../base/checksums';
import { members, must, shaped } from '../base/json';
import { MOST_CONFIRMATIONS, findNetwork, knownNetworks, type Network } from '../chain/networks';
import { confirmationsIn } from '../config/setting-types';

/** A registry that is to be followed. An absent member has the default of the network. */
export type RequestedRegistry = z.output<typeof REGISTRY_REQUEST>;

const NETWORK = must('the name or the chain id of a network', `Use one of ${knownNetworks()}.`);
const ADDRESS = must('a string', 'Give the address of the registry: 0x and 40 hexadecimal digits.');

const START_BLOCK = must(
  `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  'Leave it out for the first block of the registry.',
);
const CONFIRMATIONS = must(
  `a whole number from 0 to ${MOST_CONFIRMATIONS}, "finalized" or "safe"`,
  'Leave it out for the default of the network.',
);

/** The body of `POST /registries`. */
export const REGISTRY_REQUEST = members(
  'a registry',
  {
    network: z
      .union([z.string(), z.number()], { error: NETWORK })
      .describe(`The name or the chain id of a network: ${knownNetworks()}.`)
      .transform((given, context): Network => {
        const network = findNetwork(String(given));
        if (network !== undefined) return network;
        context.addIssue(`is not a known network. Use one of ${knownNetworks()}.`);
        return z.NEVER;
      }),
    address: z
      .string({ error: ADDRESS })
      .meta({
        description: 'The registry, in lower case or with its checksum.',
        pattern: '^0[xX][0-9a-fA-F]{40}$',
      })
      .transform((given, context): string => {
        const isAddress = /^0x[0-9a-f]{40}$/i.test(given);
        const address = isAddress ? checksummed(given) : undefined;
        if (address !== undefined) return address;
        context.addIssue(
          isAddress
            ? 'has a wrong checksum. Correct it, or write it in lower case.'
            : 'is not an address. It is 0x and 40 hexadecimal digits.',
        );
        return z.NEVER;
      }),
    startBlock: z
      .int({ error: START_BLOCK })
      .min(0, { error: START_BLOCK })
      .optional()
      .describe("The first block to read, at most the newest of the chain. Absent: the registry's first."),
    confirmations: confirmationsIn(CONFIRMATIONS)
      .optional()
      .describe(
        'Blocks on top of an event before it is delivered, or the block tag of the chain that its block ' +
          'must have reached. Absent: the default of the network.',
      ),
  },
  {
    rpcUrl: 'is set in service.config.json only. Leave it out, or list the registry there.',
    webhook: 'is set in service.config.json only. Leave it out, or make a subscription.',
  },
);

/**
 * Checks the body of `POST /registries`.
 *
 * @throws RequestError REGISTRY_INVALID, with JSON pointer and remedy in the message.
 */
export function parseRegistry(body: unknown): RequestedRegistry {
  return shaped(REGISTRY_REQUEST, body, 'REGISTRY_INVALID');
}
