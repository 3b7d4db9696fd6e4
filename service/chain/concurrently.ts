/**
 * Does something for each item, a few at the same time; gives the results in the items' order. Rejects with
 * the first failure, and begins nothing more then.
 */
export async function concurrently<T, R>(
  items: readonly T[],
  atOnce: number,
  action: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) {
      if (hasFailed) return;
      results[index] = await action(item);
    }
  };
  const failing = (error: unknown): never => {
    hasFailed = true;
    throw error;
  };
  await Promise.all(Array.from({ length: atOnce }, () => worker().catch(failing)));
  return results;
}
