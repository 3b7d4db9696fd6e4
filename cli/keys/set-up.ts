import { readSettings } from '../../service/config/config';
import { domainOf, networkOf, walletPrivateKeyOf, type Settings } from '../../service/config/settings';
import { withCommandsFor } from '../../service/config/tenant';
import { makeDidKey } from './make-did-key';
import { makeSigningKey } from './make-signing-key';

/**
 * Makes the issuer's did:web key pair and the key that signs webhooks if they are missing. Yields the lines
 * to print: what was made, then the settings that the service still needs to issue and deliver.
 *
 * @param environment instead of the process's.
 * @throws the errors of makeDidKey and makeSigningKey.
 */
export async function* setUp(environment?: Settings): AsyncGenerator<string> {
  yield* await makeDidKey({ force: false }, environment);
  yield* await makeSigningKey({ force: false }, environment);
  const { envFile, settings } = readSettings(environment);
  const missing = missingSettings(settings).map((line) => `  ${line}`);
  yield missing.length === 0 ? 'Nothing is missing. Next: `npm run service`.' : `Missing in ${envFile}:`;
  for (const line of missing) yield withCommandsFor(envFile, line);
}

/** One line for each missing setting, with the remedy. */
function missingSettings(settings: Settings): string[] {
  const network = networkOf(settings);
  domainOf(settings);
  const lines: string[] = [];
  if (walletPrivateKeyOf(settings) === undefined)
    lines.push(`WALLET_PRIVATE_KEY: set it to the key of a wallet that can pay on ${network.name}`);
  if (settings.TOKEN_REGISTRY_ADDRESS === undefined)
    lines.push('TOKEN_REGISTRY_ADDRESS: `npx hardhat deploy` deploys a registry and writes it');
  if (settings.WEBHOOK_URL === undefined)
    lines.push(
      'WEBHOOK_URL: set it to the URL that receives events; without it they are stored but not delivered',
    );
  return lines;
}
