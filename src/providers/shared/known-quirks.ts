import type { Clock } from '#kit/async/clock';

/** The quirks learned from the refusals of a provider's models. They expire after an hour, since providers change. */
export interface KnownQuirks<Quirks> {
  of(model: string): Quirks | undefined;
  /** Must be called only when a request encoded with them was accepted: a refusal alone proves nothing. */
  keep(model: string, quirks: Quirks): void;
}

const keptMilliseconds = 3_600_000;
/** Clients may choose names of models: limits on their number and length bound the memory. */
const mostNames = 1000;
const longestName = 500;

/** @param always the provider's fixed quirks, for all models */
export function knownQuirks<Quirks>(clock: Clock, always?: Quirks): KnownQuirks<Quirks> {
  const known = new Map<string, { readonly quirks: Quirks; readonly until: number }>();
  return {
    of(model) {
      const one = known.get(model);
      if (one && one.until > clock.monotonic()) return one.quirks;
      known.delete(model);
      return always;
    },
    keep(model, quirks) {
      if (model.length > longestName) return;
      known.delete(model);
      known.set(model, { quirks, until: clock.monotonic() + keptMilliseconds });
      const [oldest] = known.keys();
      if (known.size > mostNames) known.delete(oldest!);
    },
  };
}
