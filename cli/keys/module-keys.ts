import { existsSync, readFileSync } from 'node:fs';
import { computeAddress, hexlify } from 'ethers';
import { keyIdOf, p256Multibase } from '../../service/base/did-key-pair';
import { ConfigurationError } from '../../service/base/errors';
import { pathsOf, readSettings } from '../../service/config/config';
import { wrong } from '../../service/config/setting-types';
import { moduleOf, settingOf, type ModuleSettings, type Settings } from '../../service/config/settings';
import { tenantOf } from '../../service/config/tenant';
import { openModule } from '../../service/keys/pkcs11';
import type { Say } from '../answer';
import { setEnvValue, shadowWarning } from '../files/env-file';
import { PUBLIC_MODE, refuseUnwritable, writeFileAtomically } from '../files/write-file';
import { didDocumentOf, issuerOf, type DidDocument } from './did-key';

/** The keys that `tdoc setup --pkcs11` made or found, as JSON of its answer. */
export interface ModuleKeys {
  module: string;
  token: string;
  /** Null if a remote signer has the wallet's key. */
  wallet: { label: string; address: string } | null;
  issuer: { label: string; publicKeyMultibase: string };
}

/**
 * Makes the wallet's key and the issuer's inside the module, if there are none of their labels, and writes
 * the settings that name them, and did.json. Nothing can read the private keys. Run again, it finds the same
 * keys.
 *
 * @throws ConfigurationError if a setting is missing, a key has another form already, or did.json is of
 *   another key; SignerError.
 */
export async function makeModuleKeys(say: Say, environment?: Settings): Promise<ModuleKeys> {
  const { envFile, settings } = readSettings(environment);
  const did = issuerOf(envFile, settings);
  const keyModule = moduleOf(settings) ?? missingModule(envFile);
  for (const name of ['WALLET_PRIVATE_KEY', 'DID_KEY_PAIRS'] as const)
    if (settings[name] !== undefined) {
      const remedy = `Unset it in ${envFile} first, and keep it elsewhere while it is of use.`;
      throw wrong(name, 'is set: the key is not in the module', remedy);
    }
  const { didDocumentPath } = pathsOf(envFile, settings);
  refuseUnwritable(didDocumentPath);
  const { isDefault, name } = tenantOf(envFile);
  const labelOf = (use: string): string => (isDefault ? use : `${name}-${use}`);
  const write = async (setting: string, value: string): Promise<void> => {
    await setEnvValue(envFile, setting, value);
    const warning = shadowWarning(setting, value, environment);
    if (warning !== undefined) say(warning);
  };
  const { path, token } = keyModule;
  const wallet = await makeWallet(keyModule, settings, { label: labelOf('wallet'), write, say });
  const label = settingOf(settings, 'DID_PKCS11_KEY') ?? labelOf('issuer');
  const { publicKey } = await openModule(keyModule).client.make({ label, curve: 'P-256' });
  const publicKeyMultibase = p256Multibase(publicKey);
  publish(didDocumentPath, did, publicKeyMultibase);
  await write('DID_PKCS11_KEY', label);
  say(`issuer's key   ${label} in token ${token} (DID_PKCS11_KEY)`);
  say(`issuer         ${did}`);
  say(`DID document   ${didDocumentPath} (public; the service serves it at /.well-known/did.json)`);
  return { module: path, token, wallet, issuer: { label, publicKeyMultibase } };
}

async function makeWallet(
  keyModule: ModuleSettings,
  settings: Settings,
  to: { label: string; write: (setting: string, value: string) => Promise<void>; say: Say },
): Promise<ModuleKeys['wallet']> {
  if (settingOf(settings, 'WALLET_SIGNER_URL') !== undefined) {
    to.say("wallet's key   at WALLET_SIGNER_URL: none is made");
    return null;
  }
  const label = settingOf(settings, 'WALLET_PKCS11_KEY') ?? to.label;
  const { publicKey } = await openModule(keyModule).client.make({ label, curve: 'secp256k1' });
  const address = computeAddress(hexlify(publicKey));
  const before = settingOf(settings, 'WALLET_ADDRESS');
  if (before !== undefined && before !== address) {
    const remedy = `Correct WALLET_PKCS11_KEY, or unset WALLET_ADDRESS: the key's address is ${address}.`;
    throw wrong('WALLET_ADDRESS', `is not the address of the module's key "${label}"`, remedy);
  }
  await to.write('WALLET_ADDRESS', address);
  await to.write('WALLET_PKCS11_KEY', label);
  to.say(`wallet's key   ${label} in token ${keyModule.token} (WALLET_PKCS11_KEY)`);
  to.say(`wallet         ${address} (WALLET_ADDRESS): send it funds`);
  return { label, address };
}

/** Published before the settings name it, so that the service signs with no key that nobody can find. */
function publish(path: string, did: string, publicKeyMultibase: string): void {
  if (existsSync(path)) {
    const { verificationMethod: methods } = JSON.parse(readFileSync(path, 'utf8')) as Partial<DidDocument>;
    if (methods?.some((method) => method.publicKeyMultibase === publicKeyMultibase)) return;
    const remedy = 'Restore the key that it publishes, or move the file away to make one of this key.';
    const message = `${path} publishes another key than the one in the module.`;
    throw new ConfigurationError('KEY_EXISTS', message, { remedy });
  }
  const key = {
    id: keyIdOf(did, 1),
    type: 'Multikey',
    controller: did,
    publicKeyMultibase,
  } as const;
  writeFileAtomically(path, `${JSON.stringify(didDocumentOf(key), null, 2)}\n`, PUBLIC_MODE);
}

function missingModule(envFile: string): never {
  const remedy =
    'Set it to the path of the library that came with the module, and PKCS11_TOKEN and PKCS11_PIN too.';
  throw wrong('PKCS11_MODULE', `is not set in ${envFile}`, remedy);
}
