/** A registry as feeds, metrics, log lines and answers name it: `80002:0x…`, its address in lower case. */
export type RegistryName = `${number}:${string}`;

export function registryName(chainId: number, address: string): RegistryName {
  return `${chainId}:${address.toLowerCase()}`;
}
