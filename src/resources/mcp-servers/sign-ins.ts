import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import type { Sealer } from '#kit/crypto/sealing';
import type { Bearer } from '#kit/mcp/exchanges';
import { beginSignIn, checkIssuer, finishSignIn, renewTokens } from '#kit/mcp/sign-in';
import { SignInFailure, type SignInDeps } from '#kit/mcp/sign-in-fetch';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import type { Audit } from '#store/auditing';
import type { Store } from '#store/open';
import { patient } from '#store/patience';
import { actorOf, SignInRows, type BegunRow, type SignInKey, type SignInRow } from './sign-in-rows.ts';
import { kind } from './store.ts';
import { repeated } from '#kit/async/repeated';
import { timed } from '#kit/async/timed';

/** How users sign in at MCP servers, each for themselves: OAuth 2.1. Tokens go to no other origin than that of the server that they are for. */
export interface SignIns {
  /** The tokens of a user for the requests to a server. */
  bearer(key: SignInKey): Bearer;
  /** Notes that the server wants its user to sign in. */
  needed(key: SignInKey): Promise<void>;
  /** Notes that a call has succeeded: it does not want that any more. */
  worked(key: SignInKey): Promise<void>;
  /** @param headers those that are configured for the server @returns the address at which the user signs in. @throws Fault `upstream-failed`, `unprocessable` */
  begin(key: SignInKey, headers: Readonly<Record<string, string>>, by: Actor): Promise<string>;
  /** Ends a sign-in that the browser came back from. Whoever's browser it is: the tokens are those of the user who began it. */
  finish(came: CameBack, from: Pick<Actor, 'requestId' | 'address'>): Promise<SignInEnd>;
  /** Forgets the tokens of a user at a server, which the user need not be able to use any more. @returns false where there was nothing */
  forget(key: Pick<SignInKey, 'userId' | 'serverId'>, by: Actor): Promise<boolean>;
  /** Waits for renewals in progress: their tokens would be lost. */
  close(): Promise<void>;
}

/** What the authorization server had the browser bring. */
export interface CameBack {
  readonly state: string | undefined;
  readonly code: string | undefined;
  readonly iss: string | undefined;
  readonly error: string | undefined;
}

/** `unknown`: nobody has begun it, or it is over; `refused`: the user or the authorization server said no; `interrupted`: the failure is ours, as when the database is away. */
export type SignInEnd = 'connected' | 'unknown' | 'refused' | 'failed' | 'interrupted';

export interface SignInsDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly audit: Audit;
  readonly streams: GuardedStreams;
  readonly clock: Clock;
  /** Origins that may be without TLS. */
  readonly allowed: () => readonly string[];
  /** Where browsers come back to; undefined: the setting `publicUrl` does not say so, and the server listens for more than this machine. */
  readonly callback: () => string | undefined;
  /** Called when the user's tokens at the server are others, or gone. */
  readonly changed: (serverId: number, userId: number) => void;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Longest time of what is asked before a browser is sent away or answered, and of a renewal (milliseconds). */
const askMilliseconds = 20_000;
/** Another machine may renew the tokens when this one has not done so in this time (seconds). */
const heldSeconds = 30;
/** Tokens are renewed so long before their end, or in the second half of a shorter life (seconds). */
const earlySeconds = 30;
const lookMilliseconds = 100;
/** Minutes that are let go by after failed renewals: the first, the second, and so on. */
const retryMinutes = [5, 10, 20, 30];
const sweepMilliseconds = 600_000;
/** Characters of what a browser brings. */
const longest = 8192;

export function openSignIns(deps: SignInsDeps): SignIns {
  const { store, seal, audit, clock, callback, changed, log } = deps;
  const rows = new SignInRows(store, seal);
  const within = deadline(clock);
  const asking = askingOf(deps);
  const { renew, close } = renewals(rows, deps);
  const stopSweeping = sweeping(rows, clock, log);

  return {
    bearer: bearers(rows, renew),
    needed: (key) => rows.needed(key),
    worked: (key) => rows.worked(key),

    async begin(key, headers, by) {
      const redirectUri = callback();
      if (redirectUri === undefined)
        throw new Fault('unprocessable', 'Signing in at MCP servers needs the setting publicUrl: the address at which browsers reach this server.');
      const state = randomText(43);
      const before = await rows.find(key);
      const { scope, tokens } = before ?? {};
      // who has begun and not ended a sign-in may have met an authorization server that knows the registration no more
      const registered = before?.state === 'connected' && !before.isClientTried ? before.registered : undefined;
      try {
        const wanted = { url: key.url, headers, redirectUri, state, scope: scope ? `${tokens?.scope ?? ''} ${scope}` : undefined, registered };
        const { url, begun } = await within((signal) => beginSignIn(wanted, asking(key), signal));
        await store.transaction((inside) => rows.begin(key, { state, keyId: by.keyId, begun }, inside));
        return url;
      } catch (error) {
        if (error instanceof SignInFailure) throw new Fault('upstream-failed', error.message, { cause: error });
        throw error;
      }
    },

    finish: endings(rows, deps),

    async forget({ userId, serverId }, by) {
      const isForgotten = await store.transaction(async (inside) => {
        const had = await rows.forget(userId, serverId, inside);
        if (had) await audit(inside, { by, action: 'mcp-server.sign-out', target: { kind, id: serverId }, before: { user: userId } });
        return had;
      });
      if (isForgotten) changed(serverId, userId);
      return isForgotten;
    },
    close() {
      stopSweeping();
      return close();
    },
  };
}

/** How a sign-in ends. Nothing is thrown: a browser waits for a page. */
function endings(rows: SignInRows, deps: SignInsDeps): SignIns['finish'] {
  const { store, audit, clock, changed, log } = deps;
  const [within, asking] = [deadline(clock), askingOf(deps)];

  async function ending(key: BegunRow, { code, iss, error }: CameBack, from: Pick<Actor, 'requestId' | 'address'>): Promise<SignInEnd> {
    await checkIssuer(key.begun, iss);
    if (code === undefined || error !== undefined) {
      await rows.failed(key, 'The sign-in was refused, or given up.');
      return 'refused';
    }
    const tokens = await within((signal) => finishSignIn(key.begun, { code, iss }, asking(key), signal));
    const isKept = await store.transaction(async (inside) => {
      const kept = await rows.connected(key, key.begun.registered, tokens, inside);
      if (kept) await audit(inside, { by: actorOf(key, from), action: 'mcp-server.sign-in', target: { kind, id: key.serverId }, after: { user: key.userId, url: key.url } });
      return kept;
    }); // prettier-ignore
    if (isKept) changed(key.serverId, key.userId);
    return isKept ? 'connected' : 'unknown';
  }

  async function ended(came: CameBack, from: Pick<Actor, 'requestId' | 'address'>): Promise<SignInEnd> {
    const { state } = came;
    const words: readonly (string | undefined)[] = [state, came.code, came.iss, came.error];
    if (state === undefined || words.some((one) => (one?.length ?? 0) > longest)) return 'unknown';
    const key = await rows.take(state);
    if (!key) return 'unknown';
    try {
      return await ending(key, came, from);
    } catch (error) {
      if (!(error instanceof SignInFailure)) throw error;
      await rows.failed(key, error.message);
      return 'failed';
    }
  }

  return (came, from) =>
    ended(came, from).catch((error: unknown) => {
      log('A sign-in at an MCP server could not be ended.', error);
      return 'interrupted';
    });
}

const askingOf =
  ({ streams, allowed }: Pick<SignInsDeps, 'streams' | 'allowed'>) =>
  ({ userId }: Pick<SignInKey, 'userId'>): SignInDeps => ({ streams, owner: String(userId), allowed: allowed() });

const deadline =
  (clock: Clock) =>
  <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> =>
    timed({ clock, milliseconds: askMilliseconds, late: new SignInFailure('The authorization server of the MCP server did not answer in time.') }, work);

interface Renewals {
  /** The access token in place of one that a server refused, or that is over. Undefined: there is none. */
  renew(key: SignInKey, old: string): Promise<string | undefined>;
  /** Begins no more, and waits for those in progress. */
  close(): Promise<void>;
}

/** How a token is replaced that a server refused, or that is over: once, by whoever holds the row, on all machines. */
function renewals(rows: SignInRows, deps: Pick<SignInsDeps, 'streams' | 'allowed' | 'clock'>): Renewals {
  const { clock } = deps;
  const [within, asking] = [deadline(clock), askingOf(deps)];
  const renewing = new Map<string, Promise<string | undefined>>();
  const closing = new AbortController();

  /** The access token that is in place of this one. Undefined: there is none, and the user is to sign in. */
  async function inPlaceOf(key: SignInKey, old: string): Promise<string | undefined> {
    for (let waited = 0; waited <= heldSeconds * 1000 && !closing.signal.aborted; waited += lookMilliseconds) {
      const row = await rows.find(key);
      if (!row?.tokens) return undefined;
      if (row.tokens.access !== old) return row.tokens.access;
      if (row.isCoolingDown) return undefined;
      if (row.tokens.refresh === undefined || !row.registered) {
        await rows.dropped(key, { renewals: row.renewals, error: hasEnded });
        return undefined;
      }
      const hold = { holder: randomText(16), until: clock.monotonic() + heldSeconds * 1000 };
      if (!row.isHeld && (await rows.held(key, { renewals: row.renewals, holder: hold.holder, seconds: heldSeconds }))) return renewed(key, row, hold);
      await clock.sleep(lookMilliseconds, closing.signal).catch(() => {});
    }
    return undefined;
  }

  async function renewed(key: SignInKey, { registered, tokens: old, failures }: SignInRow, { holder, until }: Hold): Promise<string | undefined> {
    // the old refresh token may be of no use any more: what was answered is written as long as nobody else may hold the row
    const written = <Result>(write: () => Promise<Result>) =>
      patient(write, { clock, signal: new AbortController().signal, milliseconds: until - clock.monotonic() });
    try {
      const tokens = await within((signal) => renewTokens(registered!, { refresh: old!.refresh!, scope: old!.scope }, asking(key), signal));
      if (await written(() => rows.renewed(key, holder, tokens))) return tokens.access;
      const now = await rows.find(key); // a write whose answer was lost has been done
      return now?.tokens?.access === tokens.access ? tokens.access : undefined;
    } catch (error) {
      if (!(error instanceof SignInFailure)) throw error;
      const retry = error.isRefused ? undefined : retryMinutes[Math.min(failures, retryMinutes.length - 1)];
      await written(() => rows.unrenewed(key, holder, { error: error.isRefused ? hasEnded : `${unrenewed} ${error.message}`, retryMinutes: retry }));
      return undefined;
    }
  }

  return {
    // the same for all who ask in this process; other machines wait for the row
    renew(key, old) {
      const name = JSON.stringify([key.userId, key.serverId, key.url, old]);
      const before = renewing.get(name);
      if (before) return before;
      const now = inPlaceOf(key, old).finally(() => renewing.delete(name));
      renewing.set(name, now);
      return now;
    },
    async close() {
      closing.abort();
      await Promise.allSettled(renewing.values());
    },
  };
}

/** The tokens of users, which are renewed shortly before their end. */
const bearers =
  (rows: SignInRows, renew: Renewals['renew']): SignIns['bearer'] =>
  (key) => ({
    async token() {
      const row = await rows.find(key);
      if (!row?.tokens) return undefined;
      const { access, refresh, seconds = 0 } = row.tokens;
      const isOver = row.secondsLeft !== null && row.secondsLeft < Math.min(earlySeconds, seconds / 2);
      return isOver && refresh !== undefined && !row.isCoolingDown ? renew(key, access) : access;
    },
    renew: (old) => renew(key, old),
    async refused(token) {
      const row = await rows.find(key);
      if (row?.tokens?.access === token) await rows.dropped(key, { renewals: row.renewals, error: 'The MCP server refuses the tokens of its own sign-in.' });
    },
    lacks: (scope) => rows.lacks(key, scope, 'The MCP server wants more rights than were given: sign in again.'),
  });

interface Hold {
  readonly holder: string;
  /** When others may hold the row, on the monotonic clock (milliseconds). */
  readonly until: number;
}

const hasEnded = 'The sign-in at the MCP server has ended.';
const unrenewed = 'The sign-in at the MCP server could not be renewed, which is tried again later.';

const sweeping = (rows: SignInRows, clock: Clock, log: SignInsDeps['log']): (() => void) =>
  repeated({
    clock,
    milliseconds: sweepMilliseconds,
    work: () => rows.sweep(),
    failed: (cause) => log('Sign-ins that were begun and not ended could not be deleted.', cause),
  });
