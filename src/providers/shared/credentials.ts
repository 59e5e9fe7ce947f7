import type { Clock } from '#kit/async/clock';

/** A credential, such as a key. */
export interface Credential {
  /** All headers of an authenticated request. @throws Fault; or the signal's reason */
  headers(signal: AbortSignal): RequestHeaders | Promise<RequestHeaders>;
  /** Called when the provider rejected it. */
  refused(): void;
}

export type RequestHeaders = Readonly<Record<string, string>>;

/** The credentials of one provider. */
export interface Credentials {
  /** The credentials to try for one request, in order: at least one. */
  inTurn(): readonly Credential[];
}

/**
 * Sets a credential aside that was refused in an answer whose status was 200.
 *
 * @returns those with which the call can be sent again; undefined where there are none
 */
export function credentialsLeft(credentials: Credentials, refused: Credential): Credentials | undefined {
  refused.refused();
  const left = credentials.inTurn().filter((one) => one !== refused);
  return left.length === 0 ? undefined : { inTurn: () => left };
}

const asideMilliseconds = 60_000;

/**
 * Rotates over several keys of one provider; a rejected key comes last for a minute.
 *
 * @param headersOf returns the headers of a request with this key, or without one if the provider has no keys
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
