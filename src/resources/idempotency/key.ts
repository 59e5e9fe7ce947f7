import { createHmac } from 'node:crypto';
import type { Caller } from '#core/context';
import { invalid } from '#core/fault';

/** A request that is to be answered once. */
export interface Keyed {
  readonly userId: number;
  /** Digest of the key; the key itself is nowhere but in the request. */
  readonly name: Buffer;
  /** Digest of method, address, choosing headers, body, and what the API key may do: another one is another request. */
  readonly fingerprint: Buffer;
}

export interface Request {
  readonly caller: Pick<Caller, 'userId' | 'scopes' | 'models' | 'mcpTools'>;
  /** As the header has it. */
  readonly key: string;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** Names and values of the headers that choose what is answered. */
  readonly choices: readonly string[];
  readonly body: Uint8Array;
}

/** @param pepper 32 bytes, the same on every machine. @throws Fault `invalid` for a key that is not 1 to 255 visible characters of ASCII */
export function keyed({ caller, key, method, url, choices, body }: Request, pepper: Buffer): Keyed {
  if (!/^[!-~]{1,255}$/.test(key)) throw invalid('Idempotency-Key', 'must be 1 to 255 visible ASCII characters without spaces');
  return {
    userId: caller.userId,
    name: createHmac('sha256', pepper).update(`key ${key}`).digest(),
    fingerprint: createHmac('sha256', pepper)
      .update(`request ${JSON.stringify([method, withoutCredential(url), ...more(caller, choices)])}`)
      .update(body)
      .digest(),
  };
}

/** A key that may do less must not be given what one that may do more was answered. */
function more({ scopes, models, mcpTools }: Request['caller'], choices: readonly string[]): readonly unknown[] {
  const rights = [scopes, models, mcpTools].map((names) => names?.toSorted() ?? null);
  if (choices.length === 0 && rights.every((names) => names === null)) return [];
  return [choices, rights];
}

/** A user's next key may ask again for what the former was answered. */
function withoutCredential(url: string): string {
  const at = url.indexOf('?');
  if (at < 0) return url;
  const query = new URLSearchParams(url.slice(at));
  query.delete('key');
  return query.size === 0 ? url.slice(0, at) : `${url.slice(0, at)}?${query.toString()}`;
}
