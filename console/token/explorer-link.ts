/** A page of the network's explorer, if there is one. Only web addresses become links. */
export function explorerLink(
  explorerUrl: string | null,
  kind: 'address' | 'tx',
  value: string,
): string | undefined {
  if (explorerUrl === null || !/^https?:\/\//.test(explorerUrl)) return undefined;
  return `${explorerUrl.replace(/\/$/, '')}/${kind}/${encodeURIComponent(value)}`;
}
