import { randomBytes } from 'node:crypto';
import { Wallet } from 'ethers';
import { mark } from './marked-secrets';

/** Settings with secrets that can be recognised in any output. */
export interface MarkedSettings {
  wallet: { address: string; privateKey: string };
  /** Keyed by a name for messages. A test adds the keys that it creates. */
  secrets: Record<string, string>;
  secret: (name: string) => string;
  /** A URL of 127.0.0.1 with a user, a password, a key in its path and one in its query. */
  nodeUrl: (port: number, protocol?: string) => string;
  /** For commands and for the service. `port`: that of the gas station and the webhook. */
  settings(port: number): Record<string, string>;
  /** Those of a wallet whose key a signer has, which answers at `port`. */
  remoteWallet(port: number): Record<string, string>;
  /** For service.config.json. */
  webhookHeaders: Record<string, string>;
}

/** Makes new secrets. */
export function markedSettings(): MarkedSettings {
  const wallet = Wallet.createRandom();
  const user = mark('u-');
  const password = mark('p@"\\');
  const secrets: Record<string, string> = {
    WALLET_PRIVATE_KEY: wallet.privateKey,
    WALLET_SIGNER_TOKEN: mark('"\\'),
    'key of the signer': mark(),
    ETHERSCAN_API_KEY: mark(),
    PROVIDER_API_KEY: mark(),
    NETWORK_A_API_KEY: mark('+/='),
    API_KEY: mark('"\\'),
    ADMIN_API_KEY: mark('"\\'),
    CONSOLE_READ_KEY: mark('"\\'),
    SECRETS_KEY: randomBytes(32).toString('base64'),
    TUNNEL_AUTHTOKEN: mark(),
    'user of the node': user,
    'password of the node': password,
    'password of the database': mark('%40'),
    'key in the path': mark(),
    'key in the query': mark(),
    'key of the webhook': mark(),
    'header of the webhook': mark(),
    'user of the webhook': mark(),
    'password of the webhook': mark('p@"\\'),
    'key of the gas station': mark(),
  };
  const secret = (name: string): string => secrets[name] ?? '';
  const query = `apikey=${secret('key in the query')}&chain=local`;
  const whole = [
    'ETHERSCAN_API_KEY',
    'PROVIDER_API_KEY',
    'NETWORK_A_API_KEY',
    'API_KEY',
    'ADMIN_API_KEY',
    'CONSOLE_READ_KEY',
    'SECRETS_KEY',
    'TUNNEL_AUTHTOKEN',
  ].map((name) => [name, secret(name)]);
  const webhookUrl = (port: number): string => {
    const name = secret('user of the webhook');
    const encoded = encodeURIComponent(secret('password of the webhook'));
    return `http://${name}:${encoded}@127.0.0.1:${port}/hooks/${secret('key of the webhook')}`;
  };
  return {
    wallet,
    secrets,
    secret,
    nodeUrl: (node, protocol = 'http') =>
      `${protocol}://${user}:${encodeURIComponent(password)}@127.0.0.1:${node}/` +
      `v3/${secret('key in the path')}?${query}`,
    settings: (port) => ({
      ...(Object.fromEntries(whole) as Record<string, string>),
      // Libraries print it in lower case.
      WALLET_PRIVATE_KEY: wallet.privateKey.slice(2).toUpperCase(),
      GAS_STATION_URL: `http://127.0.0.1:${port}/?token=${secret('key of the gas station')}`,
      WEBHOOK_URL: webhookUrl(port),
    }),
    remoteWallet: (port) => ({
      WALLET_PRIVATE_KEY: '',
      WALLET_SIGNER_URL: `http://127.0.0.1:${port}/${secret('key of the signer')}`,
      WALLET_ADDRESS: wallet.address,
      WALLET_SIGNER_TOKEN: secret('WALLET_SIGNER_TOKEN'),
    }),
    webhookHeaders: { 'X-Authorization': `Bearer ${secret('header of the webhook')}` },
  };
}
