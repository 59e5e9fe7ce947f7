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

/**
 * @param base what is known of a model before it was asked: by the vendor at the provider's address and the model's name. Learned quirks begin with these
 */
export function knownQuirks<Quirks>(clock: Clock, base: (model: string) => Quirks | undefined = () => undefined): KnownQuirks<Quirks> {
  const learned = new Map<string, { readonly quirks: Quirks; readonly until: number }>();
  const bases = new Map<string, Quirks | undefined>();
  const baseOf = (model: string) => {
    if (bases.has(model)) return bases.get(model);
    const quirks = base(model);
    remember(bases, model, quirks);
    return quirks;
  };
  return {
    of(model) {
      const one = learned.get(model);
      if (one && one.until > clock.monotonic()) return one.quirks;
      if (one) learned.delete(model);
      return baseOf(model);
    },
    keep(model, quirks) {
      remember(learned, model, { quirks, until: clock.monotonic() + keptMilliseconds });
    },
  };
}

function remember<Value>(values: Map<string, Value>, model: string, value: Value): void {
  if (model.length > longestName) return;
  values.delete(model);
  values.set(model, value);
  const [oldest] = values.keys();
  if (values.size > mostNames) values.delete(oldest!);
}
