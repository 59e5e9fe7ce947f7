import type { Clock } from '#kit/async/clock';
import { Fault, type FaultDetails } from '#core/fault';
import type { KeyCooldowns } from '#core/key-cooldowns';

/** A credential, such as a key. */
export interface Credential {
  /** All headers of an authenticated request. @throws Fault; or the signal's reason */
  headers(signal: AbortSignal): RequestHeaders | Promise<RequestHeaders>;
  /** Called when the provider rejected it. @param sent the headers of that request, if known @returns true if the next token may be accepted in place of this one */
  refused(sent?: RequestHeaders): boolean;
  /** Called when the provider accepted a request with it. */
  accepted?(): void;
  /** Called when the provider's rate limit is exceeded with it. @returns the fault, as it is with regard to the other credentials. Absent: there are no others */
  limited?(fault: Fault, model: string, keys: KeyCooldowns): Fault;
}

export type RequestHeaders = Readonly<Record<string, string>>;

export interface Credentials {
  /** The credentials to try for one request for the model, in order: at least one. @param keys absent: none is in cooldown */
  inTurn(model: string, keys?: KeyCooldowns): readonly Credential[];
}

interface Refused {
  readonly credential: Credential;
  readonly model: string;
  readonly keys: KeyCooldowns | undefined;
}

/** The credentials with which a call can be sent again that was refused with one of them in an answer of status 200; undefined where there are none. */
export function credentialsWithout(credentials: Credentials, { credential: refused, model, keys }: Refused): Credentials | undefined {
  const left = credentials.inTurn(model, keys).filter((one) => one !== refused);
  return left.length === 0 ? undefined : { inTurn: () => left };
}

const asideMilliseconds = 60_000;

/**
 * Rotates over several keys of one provider. A rejected key comes last for a minute, for all models, and one with which a rate limit is exceeded during its
 * cooldown, for its model.
 * @param headersOf returns the headers of a request with this key, or without one if the provider has no keys
 */
export function keyCredentials(keys: readonly string[], clock: Clock, headersOf: (key: string | undefined) => RequestHeaders): Credentials {
  if (keys.length < 2) {
    const headers = headersOf(keys[0]);
    const all = [{ headers: () => headers, refused: () => false }];
    return { inTurn: () => all };
  }
  const asideUntil = new Map<Credential, number>();
  const asideFor = (one: Credential) => Math.max(0, (asideUntil.get(one) ?? 0) - clock.monotonic());
  const all = keys.map((key) => {
    const headers = headersOf(key);
    const credential: Credential = {
      headers: () => headers,
      refused() {
        asideUntil.set(credential, clock.monotonic() + asideMilliseconds);
        return false;
      },
      limited(fault, model, keys) {
        keys.limited(model, credential, fault);
        if (keys.wait(model, credential) === 0) return fault; // cooldowns are disabled
        const shortest = Math.min(...all.map((one) => Math.max(asideFor(one), keys.wait(model, one))));
        return detailed(fault, shortest === 0 ? { retryAfter: 1, otherKey: true } : { retryAfter: shortest / 1000 });
      },
    };
    return credential;
  });
  const rotations = all.map((_, first) => rotated(all, first));
  let turn = 0;
  return {
    inTurn(model, keys) {
      const first = turn++;
      if (asideUntil.size === 0 && !keys?.any) return rotations[first % all.length]!;
      const waitOf = (one: Credential) => keys?.wait(model, one) ?? 0;
      const usable = all.filter((one) => waitOf(one) === 0);
      const free = usable.filter((one) => asideFor(one) === 0);
      for (const one of free) asideUntil.delete(one);
      const aside = usable.filter((one) => !free.includes(one));
      const cooling = all.filter((one) => !usable.includes(one)).toSorted((a, b) => waitOf(a) - waitOf(b));
      const order = [...rotated(free, first), ...rotated(aside, first), ...cooling];
      keys?.used(model, order[0]!);
      return order;
    },
  };
}

function rotated<Item>(items: readonly Item[], turn: number): readonly Item[] {
  const first = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

const detailed = ({ code, message, details }: Fault, more: FaultDetails): Fault => new Fault(code, message, { ...details, ...more });
