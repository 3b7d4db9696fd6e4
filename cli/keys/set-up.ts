import { readSettings } from '../../service/config/config';
import { settingOf, type Settings } from '../../service/config/settings';
import { withCommandsFor } from '../../service/config/tenant';
import type { Answer, Say } from '../answer';
import { printableJson } from '../terminal/printable';
import { makeDidKey } from './make-did-key';
import { makeSigningKey } from './make-signing-key';

/**
 * Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, and lists the
 * settings that the service still needs to issue and deliver.
 *
 * @param environment instead of the process's.
 * @throws the errors of makeDidKey and makeSigningKey.
 */
export async function setUp(say: Say, environment?: Settings): Promise<Answer> {
  const didKey = await makeDidKey({ force: false }, environment);
  didKey.lines.forEach(say);
  const signingKey = await makeSigningKey({ force: false }, environment);
  signingKey.lines.forEach(say);
  const { envFile, settings } = readSettings(environment);
  const missing = missingSettings(settings).map(({ setting, remedy }) => ({
    setting,
    remedy: withCommandsFor(envFile, remedy),
  }));
  return {
    lines: [
      missing.length === 0 ? 'Nothing is missing. Next: `npm run service`.' : `Missing in ${envFile}:`,
      ...missing.map(({ setting, remedy }) => `  ${setting}: ${remedy}`),
    ],
    json: printableJson({ didKey: didKey.json, signingKey: signingKey.json, missing }),
    isYes: true,
  };
}

/** The missing settings, each with its remedy. */
function missingSettings(settings: Settings): { setting: string; remedy: string }[] {
  const network = settingOf(settings, 'NET');
  settingOf(settings, 'DOMAIN');
  const remedies = {
    WALLET_PRIVATE_KEY:
      settingOf(settings, 'WALLET_PRIVATE_KEY') === undefined &&
      `set it to the key of a wallet that can pay on ${network.name}`,
    TOKEN_REGISTRY_ADDRESS:
      settings.TOKEN_REGISTRY_ADDRESS === undefined &&
      '`npx hardhat deploy` deploys a registry and writes it',
    WEBHOOK_URL:
      settings.WEBHOOK_URL === undefined &&
      'set it to the URL that receives events; without it they are stored but not delivered',
  };
  return Object.entries(remedies).flatMap(([setting, remedy]) => (remedy ? [{ setting, remedy }] : []));
}
