import type { Clock } from '#kit/async/clock';

/** What the models of a provider were seen to refuse. Providers change: it is forgotten after an hour. */
export interface KnownQuirks<Quirks> {
  of(model: string): Quirks | undefined;
  /** To be called only when a request that was encoded with them was accepted: a refusal alone proves nothing. */
  keep(model: string, quirks: Quirks): void;
}

const keptMilliseconds = 3_600_000;
/** Names of models may be names that clients chose: neither many nor long ones fill the memory. */
const mostNames = 1000;
const longestName = 500;

/** @param always how the provider differs, whatever the model and whatever was learned */
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
