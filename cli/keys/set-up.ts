import { pathsOf, readSettings } from '../../service/config/config';
import { readConfigFile } from '../../service/config/config-file';
import { settingOf, type Settings } from '../../service/config/settings';
import type { Answer, Say } from '../answer';
import { printableJson } from '../terminal/printable';
import { makeDidKey } from './make-did-key';
import { makeSigningKey } from './make-signing-key';

/**
 * Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, and lists the
 * settings that the service still needs to issue and deliver.
 *
 * @param environment instead of the process's.
 * @throws the errors of readConfigFile, makeDidKey and makeSigningKey.
 */
export async function setUp(say: Say, environment?: Settings): Promise<Answer> {
  const { envFile, settings } = readSettings(environment);
  // A damaged file is reported before anything is made.
  const { webhook } = readConfigFile(pathsOf(envFile, settings).serviceConfig);
  const didKey = await makeDidKey({ force: false }, environment);
  didKey.lines.forEach(say);
  const signingKey = await makeSigningKey({ force: false }, environment);
  signingKey.lines.forEach(say);
  const missing = missingSettings(settings, webhook?.url);
  return {
    lines: [
      missing.length === 0 ? 'Nothing is missing. Next: `npx tdoc service`.' : `Missing in ${envFile}:`,
      ...missing.map(({ setting, remedy }) => `  ${setting}: ${remedy}`),
    ],
    json: printableJson({ didKey: didKey.json, signingKey: signingKey.json, missing }),
    isYes: true,
  };
}

/** The missing settings, each with its remedy. `webhookUrl`: that of service.config.json. */
function missingSettings(
  settings: Settings,
  webhookUrl: string | undefined,
): { setting: string; remedy: string }[] {
  const network = settingOf(settings, 'NET');
  settingOf(settings, 'DOMAIN');
  const { rpcKey } = network;
  const remedies = {
    ...(rpcKey && {
      [rpcKey]:
        settings[rpcKey] === undefined &&
        settings.RPC_URL === undefined &&
        `set it to reach ${network.name}, or set RPC_URL to a node of your own`,
    }),
    WALLET_PRIVATE_KEY:
      settingOf(settings, 'WALLET_PRIVATE_KEY') === undefined &&
      `set it to the key of a wallet that can pay on ${network.name}`,
    TOKEN_REGISTRY_ADDRESS:
      settings.TOKEN_REGISTRY_ADDRESS === undefined &&
      '`npx hardhat deploy` deploys a registry and writes it',
    WEBHOOK_URL:
      settings.WEBHOOK_URL === undefined &&
      webhookUrl === undefined &&
      'set it to the URL that receives events; without it they are stored but not delivered',
  };
  return Object.entries(remedies).flatMap(([setting, remedy]) => (remedy ? [{ setting, remedy }] : []));
}
