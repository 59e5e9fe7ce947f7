import type { Clock } from '#kit/async/clock';

/** One way to sign in, such as a key. */
export interface Credential {
  /** All headers of a request that is signed with it. @throws Fault; or the signal's reason */
  headers(signal: AbortSignal): RequestHeaders | Promise<RequestHeaders>;
  /** The provider did not accept it. */
  refused(): void;
}

export type RequestHeaders = Readonly<Record<string, string>>;

/** The credentials of one provider. */
export interface Credentials {
  /** Those to try for one request, in order: at least one. */
  inTurn(): readonly Credential[];
}

const asideMilliseconds = 60_000;

/**
 * Several keys of one provider, used in turn; one that was refused comes last for a minute.
 *
 * @param headersOf the headers of a request with this key; without any where the provider has no keys
 */
export function keyCredentials(keys: readonly string[], clock: Clock, headersOf: (key: string | undefined) => RequestHeaders): Credentials {
  const asideUntil = new Map<Credential, number>();
  const credentialOf = (key: string | undefined): Credential => {
    const headers = headersOf(key);
    const credential: Credential = {
      headers: () => headers,
      refused: () => void asideUntil.set(credential, clock.monotonic() + asideMilliseconds),
    };
    return credential;
  };
  const all = keys.length === 0 ? [credentialOf(undefined)] : keys.map(credentialOf);
  let turn = 0;
  return {
    inTurn() {
      if (all.length === 1) return all;
      const first = turn++ % all.length;
      const now = clock.monotonic();
      const rotated = [...all.slice(first), ...all.slice(0, first)];
      const isAside = (one: Credential) => (asideUntil.get(one) ?? 0) > now;
      return [...rotated.filter((one) => !isAside(one)), ...rotated.filter(isAside)];
    },
  };
}
