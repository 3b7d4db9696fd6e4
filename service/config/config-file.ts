import { existsSync, readFileSync } from 'node:fs';
import { getAddress } from 'ethers';
import { z } from 'zod';
import { findNetwork, knownNetworks } from '../chain/networks';
import { HEADERS, PARTIAL_DELIVERY_OPTIONS } from '../base/delivery-options';
import { ConfigurationError, messageOf } from '../base/errors';
import { findJsonError, members, problemsOf } from '../base/json';
import { parsed } from './setting-types';
import { LONGEST_POLL_INTERVAL_MS, SHORTEST_POLL_INTERVAL_MS } from './settings';

const blocks = z.number().int().nonnegative();

/** The members of the subscription `default` that an operator may set. */
const webhookSchema = members('webhook', {
  url: z.url({ protocol: /^https?$/, error: 'is not a URL of http or https.' }).optional(),
  headers: HEADERS.optional(),
  ...PARTIAL_DELIVERY_OPTIONS,
});

const registrySchema = z.strictObject({
  network: z
    .union([z.string(), z.number().transform(String)])
    .pipe(parsed(findNetwork, `is not a known network: use one of ${knownNetworks()}`)),
  address: parsed(getAddress, 'is not an address: 0x and 40 hexadecimal digits'),
  startBlock: blocks.optional(),
  confirmations: blocks.optional(),
  pollIntervalMs: z.number().int().min(SHORTEST_POLL_INTERVAL_MS).max(LONGEST_POLL_INTERVAL_MS).optional(),
  rpcUrl: z.url({ protocol: /^(http|ws)s?$/ }).optional(),
  webhook: webhookSchema.optional(),
});

const configFileSchema = z.strictObject({
  webhook: webhookSchema.optional(),
  registries: z.array(registrySchema).optional(),
});

/**
 * A `webhook` object of service.config.json. All times in milliseconds; docs/settings.md has the defaults.
 */
export type WebhookOptions = z.infer<typeof webhookSchema>;

/** An entry of `registries`. */
export type RegistryEntry = z.infer<typeof registrySchema>;

/** The content of service.config.json. */
export type ConfigFile = z.infer<typeof configFileSchema>;

/**
 * Reads service.config.json; an absent file is an empty one.
 *
 * @throws ConfigurationError that names the path inside the file. Unknown keys are errors: a misspelt one
 *   must not be ignored.
 */
export function readConfigFile(path: string): ConfigFile {
  if (!existsSync(path)) return {};
  const parsed = configFileSchema.safeParse(parse(textOf(path), path));
  if (parsed.success) return parsed.data;
  const problems = problemsOf(parsed.error).map(
    ({ path, problem }) => `${path.join('.') || '(top)'}: ${problem}`,
  );
  throw new ConfigurationError('CONFIGURATION_INVALID', `${path}: ${problems.join('; ')}`);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError('CONFIGURATION_INVALID', `${path} cannot be read: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/** The error of `JSON.parse` is not shown: it quotes the text around the mistake, which may be a key. */
function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const error = findJsonError(text);
    const place = error ? `: line ${error.line}, column ${error.column}: ${error.problem}` : '';
    throw new ConfigurationError('CONFIGURATION_INVALID', `${path} is not JSON${place}.`);
  }
}
