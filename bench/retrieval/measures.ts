/** Names in the order in which they were found, best first, each once. */
export type Ranked = readonly string[];

const gain = (at: number) => 1 / Math.log2(at + 2);
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

/** nDCG@10, MRR and recall@50, each the mean over all questions. @param relevant of each question, what is to be found */
export function measures(ranked: readonly Ranked[], relevant: readonly ReadonlySet<string>[]): string {
  const mean = (of: (names: Ranked, wanted: ReadonlySet<string>) => number) =>
    (sum(ranked.map((names, at) => of(names, relevant[at]!))) / ranked.length).toFixed(3);
  const ndcg = mean((names, wanted) => {
    const best = sum(Array.from({ length: Math.min(10, wanted.size) }, (_, at) => gain(at)));
    return best === 0 ? 0 : sum(names.slice(0, 10).map((name, at) => (wanted.has(name) ? gain(at) : 0))) / best;
  });
  const mrr = mean((names, wanted) => 1 / (names.findIndex((name) => wanted.has(name)) + 1 || Infinity));
  const recall = mean((names, wanted) => names.slice(0, 50).filter((name) => wanted.has(name)).length / Math.max(1, wanted.size));
  return `nDCG@10 ${ndcg}, MRR ${mrr}, recall@50 ${recall}`;
}
