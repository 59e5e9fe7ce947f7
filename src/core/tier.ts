/** The capability tiers of the content generation interface: `flash` is fast and general, `pro` the most capable. */
export type Tier = 'flash' | 'pro';

/** `<family>-<version>-<tier>`, perhaps followed by `-preview-<date part>`. */
const standard = /^[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*-(\d+(?:\.\d+)*)-(flash|pro)(-preview-\d[\d-]*)?$/i;

/** The tier in a model's name: a simple name, a standard one or a preview. */
export function tierOf(name: string): Tier | undefined {
  const word = /^(flash|pro)$/i.exec(name)?.[1] ?? standard.exec(name)?.[2];
  return word?.toLowerCase() as Tier | undefined;
}

/** Sorts names of one tier, best first: by version, a preview after its release; names without either come last. */
export function betterName(a: string, b: string): number {
  const [first, second] = [rankOf(a), rankOf(b)];
  for (let at = 0; at < Math.max(first.length, second.length); at++) {
    const difference = (second[at] ?? 0) - (first[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return Number(/-preview-/i.test(a)) - Number(/-preview-/i.test(b));
}

const rankOf = (name: string): readonly number[] => standard.exec(name)?.[1]?.split('.').map(Number) ?? [-1];
