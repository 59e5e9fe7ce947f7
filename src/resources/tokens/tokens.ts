import type { AccessToken, Caller } from '#core/context';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { isToken, keyIdOf, verified, type PublicJwk } from '#kit/crypto/jwt';
import type { Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';
import type { Found } from '../callers.ts';
import type { Passwords } from '../passwords.ts';
import { openSigningKeys } from './signing-keys.ts';
import { digestOf, openTokenStore, tokenId, type Holder, type Owner } from './store.ts';

/** A pair of address and secret, and whether it is right. */
export interface Judged {
  /** The user with the address. */
  readonly userId: number | null;
  readonly owner: Owner | undefined;
  /** Why the pair is wrong, for the user. */
  readonly why?: string;
}

/** Access tokens: they stand for a key, or for a password, for a day. */
export interface Tokens {
  /** @throws Fault `overloaded` */
  issue(owner: Owner): Promise<string>;
  judgeKey(email: string, key: string): Promise<Judged>;
  /** @param address of the client: everybody's guesses get their turn. @throws Fault `overloaded` where too many passwords are being checked */
  judgePassword(email: string, password: string, address: string): Promise<Judged>;
  /** Whose these are, in their order; undefined for each that is not a good token. @throws Fault `overloaded` */
  find(tokens: readonly string[]): Promise<readonly (Found | undefined)[]>;
  /** Those with these ids, of the good ones. @throws Fault `overloaded` */
  callers(holders: readonly Holder[]): Promise<ReadonlyMap<string, Found>>;
  user(userId: number): Promise<Found | undefined>;
  /** @throws Fault `overloaded` */
  end(token: AccessToken, userId: number): Promise<void>;
  published(): Promise<readonly PublicJwk[]>;
  close(): void;
}

export interface TokensDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly pepper: Buffer;
  readonly passwords: Pick<Passwords, 'isRight'>;
  readonly clock: Clock;
  /** Who gives the tokens, and takes them: the address of this service. */
  readonly issuer: () => string;
  readonly log: (problem: string, cause: unknown) => void;
}

const tokenSeconds = 86_400;

export async function openTokens({ store, seal, pepper, passwords, clock, issuer, log }: TokensDeps): Promise<Tokens> {
  const keys = await openSigningKeys({ store, seal, clock, log });
  const kept = openTokenStore(store);
  const seconds = () => Math.floor(clock.now() / 1000);

  async function read(text: string): Promise<(Holder & { readonly expiresAt: number }) | undefined> {
    const id = isToken(text) ? await keyIdOf(text) : undefined;
    const key = id === undefined ? undefined : await keys.find(id);
    const token = key && (await verified(text, key, issuer(), seconds()));
    if (!token) return undefined;
    const [userId, keyId] = [Number(token.subject), token.claims['key']];
    if (!Number.isSafeInteger(userId) || typeof keyId !== 'number') return undefined;
    return { userId, keyId, tokenId: token.id, expiresAt: token.expiresAt * 1000 };
  }

  return {
    ...kept,
    async issue({ userId, keyId, version }) {
      const key = await keys.current();
      const id = tokenId(version, randomText(22));
      return key.sign({ issuer: issuer(), subject: String(userId), id, more: { key: keyId } }, seconds(), tokenSeconds);
    },
    async judgeKey(email, key) {
      const { userId, isActive, owner } = await kept.byKey(email, digestOf(key, pepper));
      return { userId, owner, ...(owner ? {} : { why: isActive ? 'the key is not valid' : suspended }) };
    },
    async judgePassword(email, password, address) {
      const { userId, isActive, sealed, version } = await kept.byPassword(email);
      const isRight = await passwords.isRight(password, sealed, address);
      if (userId !== null && isRight && isActive) return { userId, owner: { userId, keyId: 0, version } };
      return { userId, owner: undefined, why: isActive ? 'the password is not right' : suspended };
    },
    async find(tokens) {
      const holders = await Promise.all(tokens.map(read));
      const good = holders.filter((holder) => holder !== undefined);
      const found = good.length === 0 ? new Map<string, Found>() : await kept.callers(good);
      return holders.map((holder) => {
        const its = holder && found.get(holder.tokenId);
        return its && withToken(its, { id: holder.tokenId, expiresAt: holder.expiresAt }, clock.now());
      });
    },
    published: keys.published,
    close: () => keys.close(),
  };
}

const suspended = 'the user is suspended';

/** The caller of a key, who came with a token. */
function withToken({ caller, expiresIn = Infinity }: Found, token: AccessToken, now: number): { caller: Caller; expiresIn: number } {
  return { caller: { ...caller, token }, expiresIn: Math.min(expiresIn, token.expiresAt - now) };
}
