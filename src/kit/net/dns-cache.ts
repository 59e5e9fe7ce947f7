import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../async/clock.ts';

/** The signature of `dns.lookup` with `all`. */
export type Lookup = (
  host: string,
  options: LookupOptions & { readonly all: true },
  then: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

interface Name {
  readonly addresses: LookupAddress[];
  /** Monotonic milliseconds. */
  readonly foundAt: number;
}

/** An entry is refreshed after 30 s. While the lookup is slow (more than 500 ms) or fails, the old entry is used for up to an hour. Failures are not cached. */
const freshMilliseconds = 30_000;
const staleMilliseconds = 3_600_000;
const patienceMilliseconds = 500;

/**
 * DNS cache for connections. The lookup of the system blocks one of a few threads until it answers, which may take many seconds: so there is one lookup per
 * name at a time, shared by all callers, and a slow lookup of a cached name is not waited for.
 */
export function rememberingLookup(clock: Clock, lookup: Lookup = systemLookup): LookupFunction {
  const known = new Map<string, Name>();
  const asking = new Map<string, Promise<LookupAddress[]>>();

  const ask = (host: string, options: LookupOptions, name: string): Promise<LookupAddress[]> => {
    const found = new Promise<LookupAddress[]>((resolve, reject) =>
      lookup(host, { ...options, all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses))),
    )
      .then((addresses) => {
        known.set(name, { addresses, foundAt: clock.monotonic() });
        return addresses;
      })
      .finally(() => asking.delete(name));
    asking.set(name, found);
    return found;
  };

  const addressesOf = async (host: string, options: LookupOptions): Promise<LookupAddress[]> => {
    const name = `${options.family ?? 0} ${options.hints ?? 0} ${host}`;
    const before = known.get(name);
    const age = before ? clock.monotonic() - before.foundAt : Infinity;
    if (before && age < freshMilliseconds) return before.addresses;
    const pending = asking.get(name) ?? ask(host, options, name);
    if (!before || age >= staleMilliseconds) return pending;
    const stale = Promise.withResolvers<LookupAddress[]>();
    const cancel = clock.after(patienceMilliseconds, () => stale.resolve(before.addresses));
    return Promise.race([pending.catch(() => before.addresses), stale.promise]).finally(cancel);
  };

  return (host, options, then) => {
    addressesOf(host, options).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all || !first) then(null, addresses);
        else then(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => then(error, ''),
    );
  };
}
