/** The lines of a message that logs in, by their names. Null: it has none. */
export interface LoginLines {
  domain: string;
  address: string;
  statement: string | null;
  uri: string;
  version: string;
  chainId: number | string;
  nonce: string;
  issuedAt: string;
  expirationTime: string | null;
  notBefore: string | null;
  requestId: string | null;
  resources: readonly string[] | null;
}

/** A message of EIP-4361 for a service whose DOMAIN is localhost:3000. */
export function loginMessage(lines: Partial<LoginLines> & Pick<LoginLines, 'address' | 'nonce'>): string {
  const { domain = 'localhost:3000', statement = null, uri = `http://${domain}` } = lines;
  const { expirationTime = null, notBefore = null, requestId = null, resources = null } = lines;
  const optional = (name: string, value: string | null): string[] =>
    value === null ? [] : [`${name}: ${value}`];
  return [
    `${domain} wants you to sign in with your Ethereum account:`,
    lines.address,
    '',
    ...(statement === null ? [] : [statement]),
    '',
    `URI: ${uri}`,
    `Version: ${lines.version ?? '1'}`,
    `Chain ID: ${lines.chainId ?? 31337}`,
    `Nonce: ${lines.nonce}`,
    `Issued At: ${lines.issuedAt ?? new Date().toISOString()}`,
    ...optional('Expiration Time', expirationTime),
    ...optional('Not Before', notBefore),
    ...optional('Request ID', requestId),
    ...(resources === null ? [] : ['Resources:', ...resources.map((one) => `- ${one}`)]),
  ].join('\n');
}
