interface LoginLines {
  /** Host of the service. */
  domain: string;
  /** The service's address, without a path. */
  uri: string;
  /** With its checksum. */
  address: string;
  /** A chain of the tokens. */
  chainId: number;
  nonce: string;
  /** ISO 8601. */
  issuedAt: string;
}

/** The text that a wallet signs to log in (EIP-4361). Without an end it is for a day. */
export function loginMessage({ domain, uri, address, chainId, nonce, issuedAt }: LoginLines): string {
  return [
    `${domain} wants you to sign in with your Ethereum account:`,
    address,
    '',
    'Read the events of this account, and subscribe to them, for a day.',
    '',
    `URI: ${uri}`,
    'Version: 1',
    `Chain ID: ${chainId}`,
    `Nonce: ${nonce}`,
    `Issued At: ${issuedAt}`,
  ].join('\n');
}
