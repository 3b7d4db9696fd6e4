import { Hex } from './hex';

/** A registry, written `<chain id>:<address>`. */
export function RegistryName({ registry }: { registry: string }) {
  const [chainId, address] = registry.split(':');
  if (address === undefined) return <Hex value={registry} what="registry" />;
  return (
    <>
      <Hex value={address} what="address of the registry" /> <span class="dim">chain {chainId}</span>
    </>
  );
}
