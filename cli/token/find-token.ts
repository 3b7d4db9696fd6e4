import type { Time } from '../../service/base/time';
import { findNetwork, knownNetworks, networkOfChain, type Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config/config';
import { ConfigurationError, RequestError } from '../../service/base/errors';
import { parseTokenId } from '../../service/registry/token-id-forms';
import { shown } from '../../service/config/setting-types';
import { rpcUrlsOf, settingOf, type Settings } from '../../service/config/settings';
import { reachRegistry, type ReachedRegistry as Reached } from '../../service/registry/registry-contracts';
import { isPlainAddress, tokenLocationOf, type TokenLocation } from '../../service/token/token-location';
import { credentialIn } from '../../service/verification/presented-credential';
import { invalid } from '../errors';
import { readJsonInput } from '../files/user-file';

/** The user's reference to a token. `network`: the value of `--network`, if given. */
export interface TokenReference {
  token: string;
  registry?: string | undefined;
  network?: string | undefined;
}

/** A token, and the id of its credential if there is one: it encrypts the remarks. */
export interface FoundToken {
  location: TokenLocation;
  credentialId: string | undefined;
}

/**
 * Finds the token that a user means: an id in the registry of the settings, or the token that the credential
 * in a file names.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN, NOT_CONFIGURED; RequestError
 *   TOKEN_ID_INVALID, CREDENTIAL_INVALID, CREDENTIAL_STATUS_INVALID; the errors of reading the file.
 */
export async function findToken({ token, registry, network }: TokenReference): Promise<FoundToken> {
  const tokenId = parseTokenId(token);
  if (tokenId !== undefined)
    return { location: { ...registryOf(registry, network), tokenId }, credentialId: undefined };
  if (registry !== undefined) requireAddress('--registry', registry);
  const found = tokenOf(await readJsonInput(token));
  const { location } = found;
  if (registry !== undefined && registry.toLowerCase() !== location.registry.toLowerCase())
    throw invalid(`--registry is ${registry}, but the credential names ${location.registry}. Leave it out.`);
  if (network !== undefined && chainIdOf(network) !== location.chainId)
    throw invalid(
      `--network is ${network}, but the credential names chain ${location.chainId}. Leave it out.`,
    );
  return found;
}

/** The token of a credential (base or derived), also in an answer of the service. */
export function tokenOf(input: unknown): FoundToken {
  const credential = credentialIn(input);
  const credentialId = typeof credential.id === 'string' ? credential.id : undefined;
  return { location: tokenLocationOf(credential), credentialId };
}

/**
 * The id of a credential.
 *
 * @throws RequestError CREDENTIAL_INVALID if it has none, because a derived version left it out.
 */
export function requireCredentialId({ credentialId }: FoundToken): string {
  if (credentialId !== undefined) return credentialId;
  const remedy = 'Give the credential as it was issued, or a derived one that has its /id.';
  throw new RequestError('CREDENTIAL_INVALID', `/id of the credential is missing. ${remedy}`, { remedy });
}

/**
 * Chooses the registry. TOKEN_REGISTRY_ADDRESS belongs to the chain of NET.
 *
 * @throws ConfigurationError ARGUMENT_INVALID, NETWORK_UNKNOWN, NOT_CONFIGURED.
 */
export function registryOf(
  registry: string | undefined,
  network: string | undefined,
): { chainId: number; registry: string } {
  if (registry !== undefined) requireAddress('--registry', registry);
  const { settings } = readSettings();
  const { chainId } = settingOf(settings, 'NET');
  const wanted = network === undefined ? chainId : chainIdOf(network);
  const address =
    registry ?? (wanted === chainId ? settingOf(settings, 'TOKEN_REGISTRY_ADDRESS') : undefined);
  if (address !== undefined) return { chainId: wanted, registry: address };
  const remedy = 'Give --registry, or set TOKEN_REGISTRY_ADDRESS and NET.';
  const message = `The registry on chain ${wanted} is not known. ${remedy}`;
  throw new ConfigurationError('NOT_CONFIGURED', message, { remedy });
}

function chainIdOf(name: string): number {
  const network = findNetwork(name);
  if (network) return network.chainId;
  const message = `There is no network "${name}" with registries. Known: ${knownNetworks()}.`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message);
}

/** @throws ConfigurationError ARGUMENT_INVALID naming the option. */
export function requireAddress(flag: string, text: string): void {
  if (isPlainAddress(text)) return;
  throw invalid(
    `${flag} ${shown(text)} is not an address: 0x and 40 hexadecimal digits, with a valid checksum.`,
  );
}

/** A registry that was reached with the settings. */
export interface ReachedRegistry extends Reached {
  /** Without the settings that apply only to NET's network, if this is another one. */
  settings: Settings;
}

/**
 * Connects to a registry on any supported chain and closes the connection afterwards. The node is that of
 * RPC_URL for the chain of NET, or for any chain while NET is not set; otherwise the network's own.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN or a missing provider key; the errors of reachRegistry.
 */
export async function withRegistry<T>(
  time: Time,
  { chainId, registry }: { chainId: number; registry: string },
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const network = networkOfChain(chainId);
  const settings = settingsFor(network);
  const node = { network, urls: rpcUrlsOf(network, settings) };
  return reachRegistry(time, node, registry, (reached) => read({ ...reached, settings }));
}

function settingsFor(network: Network): Settings {
  const { settings } = readSettings();
  const isOfNet = settings.NET === undefined || settingOf(settings, 'NET').chainId === network.chainId;
  return isOfNet
    ? settings
    : { ...settings, RPC_URL: undefined, GAS_STATION_URL: undefined, LEAST_PRIORITY_FEE_GWEI: undefined };
}
