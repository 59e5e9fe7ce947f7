/**
 * Does the work for all items, a limited number at a time.
 * @returns the results in the order of the items
 * @throws the first failure, after which no further work is begun
 */
export async function fewAtOnce<Item, Result>(items: readonly Item[], most: number, work: (item: Item) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const go = async () => {
    while (next < items.length) {
      const at = next++;
      try {
        results[at] = await work(items[at]!);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, go));
  return results;
}
