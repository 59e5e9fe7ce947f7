import type { Clock } from '#kit/clock';

/** What the models of a provider were seen to refuse. Providers change: it is forgotten after an hour. */
export interface KnownQuirks<Quirks> {
  of(model: string): Quirks | undefined;
  /** To be called only when a request in this shape was taken: a refusal alone proves nothing. */
  keep(model: string, quirks: Quirks): void;
}

const keptMilliseconds = 3_600_000;
const mostModels = 1000;

export function knownQuirks<Quirks>(clock: Clock): KnownQuirks<Quirks> {
  const known = new Map<string, { readonly quirks: Quirks; readonly until: number }>();
  return {
    of(model) {
      const one = known.get(model);
      if (one && one.until > clock.monotonic()) return one.quirks;
      known.delete(model);
      return undefined;
    },
    keep(model, quirks) {
      if (known.size >= mostModels) known.delete(known.keys().next().value!); // a name may be the caller's own
      known.set(model, { quirks, until: clock.monotonic() + keptMilliseconds });
    },
  };
}
