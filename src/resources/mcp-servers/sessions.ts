import { createHash } from 'node:crypto';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { orAborted } from '#kit/async/or-aborted';
import { connectMcp, McpFailure, type McpConnection, type McpConnectionDeps, type RemoteServer } from '#kit/mcp/connection';
import type { Program } from '#kit/mcp/child';
import type { McpDefinition } from '#kit/mcp/definitions';
import type { GuardedStreams } from '#kit/net/guarded-stream';

export interface McpSession {
  /**
   * Kept until the server says that its tools changed, or another session gets a list that differs from its last one.
   * @param oldest what the list may be old (milliseconds), 0: it is asked for anew; absent: five minutes
   */
  list(signal: AbortSignal, oldest?: number): Promise<readonly McpDefinition[]>;
  readonly call: McpConnection['call'];
  readonly leftOut: McpConnection['leftOut'];
}

export interface McpSessions {
  /**
   * Connects to a server for a user, or goes on with their session, which nobody else uses. It is left when it is not used for a minute, and when the place
   * changes. Where the server no longer knows the session, all of the work is done once more in a new one.
   *
   * Where the user has eight in use, or the process too many, it waits for ten seconds until one of them is free.
   * @throws McpFailure; Fault `rate-limited` or `overloaded` where none is; the signal's reason
   */
  use<Result>(asked: SessionAsked, work: (session: McpSession) => Promise<Result>): Promise<Result>;
  /** Leaves all sessions with a server, or those of one user. */
  forget(serverId: number, userId?: number): void;
  close(): Promise<void>;
}

export interface SessionAsked {
  readonly userId: number;
  readonly serverId: number;
  readonly place: RemoteServer | Program;
  readonly signal: AbortSignal;
  /** Of calls of which the server may ask the user: they have sessions of their own, and those of one group the same. */
  readonly group?: string;
}

interface Entry {
  readonly serverId: number;
  readonly userId: number;
  readonly digest: string;
  readonly isProgram: boolean;
  readonly connection: Promise<McpConnection>;
  tools: KeptList | undefined;
  /** Of the last list that there was: tells whether another differs. */
  definitions: string | undefined;
  uses: number;
  /** Those that have used it. */
  readonly groups: Set<string>;
  usedAt: number;
  /** `retired`: no further use has it, and it is closed after the last one that has it now. */
  state: 'open' | 'retired' | 'closed';
  cancel: () => void;
  /** Ends the attempt to connect, where it still goes on. */
  readonly giveUp: () => void;
}

interface KeptList {
  /** When it came; Infinity: it is still to come. */
  at: number;
  readonly list: Promise<readonly McpDefinition[]>;
}

const idleMilliseconds = 60_000;
const listMilliseconds = 300_000;
const connectMilliseconds = 30_000;
/** Longest time of a list with all its pages. */
const wholeListMilliseconds = 15_000;
const closedFailure = () => new McpFailure('unreachable', 'The connection to the MCP server was closed.');
const lateAnswer = () => new McpFailure('unreachable', 'The MCP server did not answer in time.');
/** Sessions of a user with one server in which it may ask. */
const mostThatAsk = 4;
/** Groups that are known to have used a session. */
const mostGroups = 1000;
/** Sessions of a user, of all, and of them programs. */
export const mostOfUser = 8;
const [mostOfAll, mostPrograms] = [256, 32];
/** Longest wait for one of them, and how many may wait. */
const [roomMilliseconds, mostWaiting] = [10_000, 1000];
/** How many try again where one is free: the first may have left, or wait for one of another kind. */
const fewAgain = 4;

/** The sessions that there are: those that can be used, by their keys, and those that only the last of their users have. */
function keptSessions() {
  const entries = new Map<string, Entry>();
  const retired = new Set<Entry>();
  const waiting = new Set<{ readonly userId: number; readonly again: () => void }>();
  /** The first of those who wait for a session try again: of the user whose session is free, and of all, who may wait for any. All at once would look through all sessions a thousand times. */
  const freed = (userId: number) => {
    const all = [...waiting];
    for (const { again } of [...all.filter((one) => one.userId === userId).slice(0, fewAgain), ...all.slice(0, fewAgain)]) again();
  };

  /** Waits until a session is free, for so long at most. */
  async function room({ after }: Pick<Clock, 'after'>, milliseconds: number, { userId, signal }: Pick<SessionAsked, 'userId' | 'signal'>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const one = { userId, again: resolve };
    waiting.add(one);
    const cancel = after(milliseconds, resolve);
    try {
      await orAborted(promise, signal);
    } finally {
      cancel();
      waiting.delete(one);
    }
  }

  function withdraw(key: string, entry: Entry, state: 'retired' | 'closed'): void {
    entry.state = state;
    if (entries.get(key) === entry) entries.delete(key);
    entry.cancel();
  }

  /** No further use has it; those that have it now may still be answered. */
  function retire(key: string, entry: Entry): void {
    if (entry.state !== 'open') return;
    withdraw(key, entry, 'retired');
    retired.add(entry);
  }

  function leave(key: string, entry: Entry): void {
    if (entry.state !== 'open') return;
    withdraw(key, entry, 'closed');
    entry.giveUp();
    closeConnection(entry);
    freed(entry.userId);
  }

  function closeRetired(entry: Entry): void {
    retired.delete(entry);
    entry.state = 'closed';
    closeConnection(entry);
    freed(entry.userId);
  }

  /** Leaves the sessions that were not used for longest until there is room. */
  function makeRoom(which: (entry: Entry) => boolean, most: number, full: () => Fault): void {
    const those = [...entries].filter(([, entry]) => which(entry));
    const idle = those.filter(([, { uses }]) => uses === 0).toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    const needed = those.length + [...retired].filter(which).length + 1;
    for (const [key, entry] of idle.slice(0, Math.max(0, needed - most))) leave(key, entry);
    if (needed - idle.length > most) throw full();
  }

  /** The tools of a server are not what they were: no other session goes on with an older list of them. */
  function forgetLists(shown: Entry): void {
    for (const entry of [...entries.values(), ...retired]) if (entry.serverId === shown.serverId && entry !== shown) entry.tools = undefined;
  }

  return { entries, retired, retire, leave, closeRetired, makeRoom, forgetLists, waiting, room, freed };
}

export function openMcpSessions({ streams, clock }: { readonly streams: GuardedStreams; readonly clock: Clock }): McpSessions {
  const { entries, retired, retire, leave, closeRetired, makeRoom, forgetLists, waiting, room, freed } = keptSessions();
  let isClosed = false;

  function enter(key: string, { userId, serverId, place, group }: SessionAsked, digest: string): Entry {
    const isProgram = 'command' in place;
    const busy = () => new Fault('overloaded', 'Too many MCP servers are in use at the moment.', { retryAfter: 5 });
    makeRoom((entry) => entry.userId === userId, mostOfUser, () => new Fault('rate-limited', `A user has at most ${mostOfUser} MCP servers in use at once.`, { retryAfter: 5 })); // prettier-ignore
    makeRoom(() => true, mostOfAll, busy);
    if (isProgram) makeRoom((entry) => entry.isProgram, mostPrograms, busy);
    const changed = () => void (entry.tools = undefined);
    const { connection, giveUp } = attempt(place, { streams, owner: String(userId), changed, elicits: group !== undefined }, clock);
    const entry = entryOf({ serverId, userId, digest, isProgram, connection, giveUp }, clock);
    entries.set(key, entry);
    connection.catch(() => leave(key, entry));
    return entry;
  }

  /** A session to use, and the one that was open before. */
  function take(asked: SessionAsked) {
    const { userId, serverId, place, group } = asked;
    const key = group === undefined ? `${userId}/${serverId}` : leastUsed(entries, { userId, group, place: `${userId}/${serverId}/asks` });
    const digest = createHash('sha256').update(JSON.stringify(place)).digest('base64url');
    const open = entries.get(key);
    if (open && open.digest !== digest) leave(key, open);
    return { key, open, using: taken(open?.state === 'open' ? open : enter(key, asked, digest), group) };
  }

  async function takeInTime(asked: SessionAsked) {
    const until = clock.monotonic() + roomMilliseconds;
    for (;;) {
      asked.signal.throwIfAborted();
      if (isClosed) throw closedFailure();
      try {
        return take(asked);
      } catch (error) {
        const left = until - clock.monotonic();
        if (!(error instanceof Fault) || left <= 0 || waiting.size >= mostWaiting) throw error;
        await room(clock, left, asked);
      }
    }
  }

  async function use<Result>(asked: SessionAsked, work: (session: McpSession) => Promise<Result>, { isRetry }: { readonly isRetry: boolean }): Promise<Result> {
    const { signal } = asked;
    const { key, open, using } = await takeInTime(asked);
    try {
      const connection = await orAborted(using.connection, signal);
      return await work({
        list: (asking, oldest = listMilliseconds) => listOf(using, connection, { clock, signal: asking, oldest, differs: () => forgetLists(using) }),
        call: (tool, args, asking, elicit) => connection.call(tool, args, asking, elicit),
        leftOut: () => connection.leftOut(),
      });
    } catch (error) {
      // the next use connects anew: a server that was restarted refuses the session that it no longer knows
      if (!(error instanceof McpFailure) || (error.trouble !== 'unreachable' && error.status === undefined)) throw error;
      retire(key, using); // what others have asked in it may still be answered
      // one that was closed on purpose was of a place that may have changed: it is not opened again
      if (using !== open || isRetry || !error.isOfSession || using.state === 'closed') throw error;
    } finally {
      using.uses--;
      using.usedAt = clock.monotonic();
      if (using.uses === 0 && using.state === 'retired') closeRetired(using);
      else if (using.uses === 0 && using.state === 'open') {
        using.cancel = clock.after(idleMilliseconds, () => leave(key, using));
        freed(using.userId);
      }
    }
    return use(asked, work, { isRetry: true });
  }

  return {
    use: (asked, work) => use(asked, work, { isRetry: false }),
    forget(serverId, userId) {
      const isMeant = (entry: Entry) => entry.serverId === serverId && (userId ?? entry.userId) === entry.userId;
      for (const [key, entry] of entries) if (isMeant(entry)) leave(key, entry);
      for (const entry of retired) if (isMeant(entry)) closeRetired(entry);
    },
    async close() {
      isClosed = true;
      const all = [...entries.values(), ...retired];
      for (const [key, entry] of entries) leave(key, entry);
      for (const entry of retired) closeRetired(entry);
      await Promise.allSettled(all.map(({ connection }) => connection.then((one) => one.close())));
    },
  };
}

const entryOf = (made: Pick<Entry, 'serverId' | 'userId' | 'digest' | 'isProgram' | 'connection' | 'giveUp'>, clock: Clock): Entry => ({
  ...made,
  tools: undefined,
  definitions: undefined,
  uses: 0,
  groups: new Set(),
  usedAt: clock.monotonic(),
  state: 'open',
  cancel: () => {},
});

const closeConnection = ({ connection }: Entry) => void connection.then((one) => one.close()).catch(() => {});

function taken(entry: Entry, group: string | undefined): Entry {
  const { groups } = entry;
  entry.cancel();
  entry.uses++;
  if (groups.size >= mostGroups) groups.clear();
  if (group !== undefined) groups.add(group);
  return entry;
}

/** Which of the sessions in which a server may ask: a question can be told to be of a run for certain where that has the session for itself. */
function leastUsed(
  entries: ReadonlyMap<string, Entry>,
  { userId, group, place }: { readonly userId: number; readonly group: string; readonly place: string },
): string {
  const all = Array.from({ length: mostThatAsk }, (_, at) => ({
    key: `${place}/${at}`,
    uses: entries.get(`${place}/${at}`)?.uses,
    isOwn: entries.get(`${place}/${at}`)?.groups.has(group) === true,
  }));
  const open = all.filter(({ uses }) => uses !== undefined).toSorted((a, b) => a.uses! - b.uses!);
  const inUse = [...entries.values()].filter((entry) => entry.userId === userId && entry.uses > 0).length;
  const another = inUse < mostThatAsk || open.length === 0 ? all.find(({ uses }) => uses === undefined) : undefined;
  const own = open.find(({ isOwn }) => isOwn); // what a server keeps of a session is there for all calls of a run
  if (own) return own.key;
  return (open[0]?.uses === 0 ? open[0] : (another ?? open[0]!)).key;
}

/** Connects, for half a minute at most, and as long as nobody gives it up. */
function attempt(place: SessionAsked['place'], deps: McpConnectionDeps, clock: Clock): Pick<Entry, 'connection' | 'giveUp'> {
  const over = new AbortController();
  const cancel = clock.after(connectMilliseconds, () => over.abort(lateAnswer()));
  let isOver = false;
  const connection = connectMcp(place, deps, over.signal).finally(() => {
    isOver = true;
    cancel();
  });
  return { connection, giveUp: () => isOver || over.abort(closedFailure()) };
}

function listOf(
  entry: Entry,
  connection: McpConnection,
  { clock, signal, oldest, differs }: { readonly clock: Clock; readonly signal: AbortSignal; readonly oldest: number; readonly differs: () => void },
): Promise<readonly McpDefinition[]> {
  if (oldest > 0 && entry.tools && clock.monotonic() - entry.tools.at < oldest) return orAborted(entry.tools.list, signal);
  const late = new AbortController();
  const cancel = clock.after(wholeListMilliseconds, () => late.abort(lateAnswer()));
  const list = connection.list(late.signal).finally(cancel); // of all who ask meanwhile
  const tools: KeptList = { at: Infinity, list };
  entry.tools = tools;
  list.then(
    (definitions) => {
      tools.at = clock.monotonic();
      const all = definitions.map(({ name, digest }) => `${name} ${digest}`).join();
      if (entry.definitions !== undefined && entry.definitions !== all) differs();
      entry.definitions = all;
    },
    () => {
      if (entry.tools === tools) entry.tools = undefined;
    },
  );
  return orAborted(list, signal);
}
