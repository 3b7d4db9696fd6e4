import type { JournalScope } from './journal';

/** What the rows of a journal are found by: `<chainId>:<registry>:<wallet>`, in lower case. */
export function scopeName({ chainId, registryAddress, walletAddress }: JournalScope): string {
  return `${chainId}:${registryAddress}:${walletAddress}`.toLowerCase();
}

/** The same backwards. */
export function parseScope(name: string): JournalScope {
  const [chainId, registryAddress = '', walletAddress = ''] = name.split(':');
  return { chainId: Number(chainId), registryAddress, walletAddress };
}
