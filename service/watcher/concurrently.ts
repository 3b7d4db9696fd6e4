/** Does something for each item, a few at the same time; gives the results in the items' order. Rejects with the first failure. */
export async function concurrently<T, R>(
  items: readonly T[],
  atOnce: number,
  action: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) results[index] = await action(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
