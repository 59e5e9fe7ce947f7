import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../async/clock.ts';

/** As `dns.lookup` with `all`. */
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

/** Asked for again after so long; while that takes longer than the patience, or fails, what was found before holds for an hour. Failures are not kept. */
const freshMilliseconds = 30_000;
const staleMilliseconds = 3_600_000;
const patienceMilliseconds = 500;

/**
 * Finds the addresses of host names, for connections. The system's own lookup blocks one of few threads until it answers, which may take many seconds: so a
 * name is looked up once at a time, whoever waits for it, and a name that was found is not waited for again while the system is slow.
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
    const asked = asking.get(name) ?? ask(host, options, name);
    if (!before || age >= staleMilliseconds) return asked;
    const stale = Promise.withResolvers<LookupAddress[]>();
    const cancel = clock.after(patienceMilliseconds, () => stale.resolve(before.addresses));
    return Promise.race([asked.catch(() => before.addresses), stale.promise]).finally(cancel);
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
