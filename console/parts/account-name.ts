/** Names the accounts of a local node as `tdoc operate` does: `account 1`. */
export function accountName(address: string, accounts: readonly string[]): string | undefined {
  const index = accounts.findIndex((account) => account.toLowerCase() === address.toLowerCase());
  return index < 0 ? undefined : `account ${index}`;
}
