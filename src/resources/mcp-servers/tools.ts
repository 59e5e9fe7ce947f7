import { createHash } from 'node:crypto';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import type { ResolveSecrets } from '#core/secrets';
import { unknownThing } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { fewAtOnce } from '#kit/async/few-at-once';
import { timed } from '#kit/async/timed';
import { McpFailure, type McpTrouble, type RemoteServer } from '#kit/mcp/connection';
import type { Program } from '#kit/mcp/child';
import type { Elicit } from '#kit/mcp/elicitation';
import type { McpDefinition } from '#kit/mcp/definitions';
import type { McpResult } from '#kit/mcp/result';
import type { Reader } from '#store/grants';
import { needsApproval, strictest, type Approval, entryOf, permittedUrl, type McpPolicy } from './policy.ts';
import { mostOfUser, type McpSessions, type SessionAsked } from './sessions.ts';
import { stateOf } from './shapes.ts';
import type { SignIns } from './sign-ins.ts';
import { hasCredential, type McpServer, type McpServerStore } from './store.ts';

/** A tool of a server as its user may call it. */
export interface ServerTool {
  readonly server: McpServer;
  readonly definition: McpDefinition;
  /** Whether the lists of the server's owner and of the operator allow it. */
  readonly isAllowed: boolean;
  /** Whether the user has approved this definition of it. */
  readonly isApproved: boolean;
  /** The stricter of what the operator and the server's owner say. */
  readonly approval: Approval;
  readonly needsApproval: boolean;
}

export interface McpTools {
  /** All tools of a server. @throws Fault `not-found`, `forbidden`, McpFailure */
  of(reader: Reader, id: number, asked: Asking): Promise<readonly ServerTool[]>;
  /**
   * The allowed tools of all servers of the reader, or of these; a server that does not answer has none.
   * @throws Fault `rate-limited`, `overloaded` where too many are in use
   */
  all(reader: Reader, asked: Asking, only?: ReadonlySet<number>): Promise<readonly ServerTool[]>;
  /** The allowed tools of all servers of the reader, or of these, that answer within five seconds, and the other servers. */
  inTime(reader: Reader, asked: Asking, only?: ReadonlySet<number>): Promise<ListInTime>;
  /**
   * Calls a tool. That the reader may use the server and the tool is checked right before.
   * @param digest the definition that is meant; absent: whichever there is
   * @param elicit asks the user what the server wants to know; absent: it cannot ask
   * @throws Fault `not-found`, `forbidden`, `conflict` for a tool that has changed; McpFailure
   */
  call(reader: Reader, wanted: ToolWanted, signal: AbortSignal, elicit?: Elicit): Promise<McpResult>;
  /** @param approved with the digest that was seen, where it is known. @throws Fault `not-found`, `conflict` where the tool has another by now; McpFailure */
  approve(reader: Reader, approved: ApprovedTool, by: Actor, signal: AbortSignal): Promise<ServerTool>;
  /** @returns the address at which the reader signs in at a server. @throws Fault `not-found`, `conflict` where its headers have a credential, `upstream-failed` */
  signIn(reader: Reader, id: number, by: Actor): Promise<string>;
  /** Remembers that the user has approved a definition, by calling it. */
  remember(userId: number, id: number, definition: Pick<McpDefinition, 'name' | 'digest'>): Promise<void>;
}

interface ListInTime {
  readonly tools: readonly ServerTool[];
  readonly failed: readonly FailedServer[];
}

interface FailedServer {
  readonly server: McpServer;
  readonly state: McpTrouble;
  readonly error: string;
}

export interface Asking {
  readonly signal: AbortSignal;
  readonly refresh?: boolean | undefined;
}

export interface ApprovedTool {
  readonly server: number;
  readonly tool: string;
  readonly digest: string | undefined;
}

export interface ToolWanted {
  readonly server: number;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly digest?: string;
}

export interface McpToolsDeps {
  readonly servers: McpServerStore;
  readonly sessions: McpSessions;
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly policy: () => McpPolicy;
  readonly resolve: ResolveSecrets;
  readonly signIns: Pick<SignIns, 'bearer' | 'needed' | 'worked' | 'begin'>;
}

/** What is approved is a definition at an address: wherever else the server is moved, its calls are to be approved again, those that wait too. */
const digestAt = (url: string, { digest }: McpDefinition) => createHash('sha256').update(`${digest} ${url}`).digest('base64url');

/** Servers that are asked at once for all tools of a user: half the sessions that a user may have. */
const atOnce = 4;

/** No tools, where one server alone has failed or must not be used as it is set up: that says nothing of the others. @throws what else there is */
const orNone =
  (signal: AbortSignal) =>
  (error: unknown): readonly ServerTool[] => {
    signal.throwIfAborted();
    if (error instanceof McpFailure || (error instanceof Fault && ofServer.has(error.code))) return [];
    throw error;
  };
const ofServer: ReadonlySet<string> = new Set(['forbidden', 'invalid', 'not-found']);

/** Longest time of a list of many servers (milliseconds): one that is slower goes on answering, and may be there the next time. */
const listMilliseconds = 5000;
/** What the list of a server may be old (milliseconds) before one of its tools is called, or shown to a model that the gateway calls, where approvals are of definitions. */
const recentMilliseconds = 5000;
class NotInTime extends Error {}
const inUse: ReadonlySet<string> = new Set(['rate-limited', 'overloaded']);

/** Why a server has no tools in a list. @throws what is not about it */
function failureOf(error: unknown): Omit<FailedServer, 'server'> {
  if (error instanceof McpFailure) return { state: error.trouble, error: error.message };
  if (error instanceof NotInTime) return { state: 'unreachable', error: error.message };
  if (error instanceof Fault && ofServer.has(error.code)) return { state: 'refused', error: error.message };
  if (error instanceof Fault && inUse.has(error.code)) return { state: 'unreachable', error: error.message };
  throw error;
}

/** Those that could not be reached the last time come last: they keep no other waiting. */
export const unreachableLast = (servers: readonly McpServer[]): readonly McpServer[] => {
  const isDead = (server: McpServer) => stateOf(server) === 'unreachable';
  return [...servers.filter((one) => !isDead(one)), ...servers.filter(isDead)];
};

/** Where a server is, and what its requests carry. @throws Fault where it must not be connected to */
const placesOf =
  ({ servers, policy, resolve, signIns }: Omit<McpToolsDeps, 'sessions'>) =>
  async ({ userId }: Reader, server: McpServer): Promise<RemoteServer | Program> => {
    const { stdio } = policy();
    if (server.operatorName !== null && server.url === '') {
      const program = stdio.find(({ name }) => name === server.operatorName);
      if (!program) throw unknownThing('MCP server');
      const { command, args, env } = program;
      return { command, args, env };
    }
    const { href: url } = permittedUrl(server.url, policy());
    const own = server.hasHeaders ? await servers.headersOf(server) : undefined;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(own?.headers ?? {})) {
      headers[name] = await resolve(own!.by, value);
      if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(headers[name]))
        throw new Fault('invalid', `The header ${name} of the MCP server has a value that no header may have.`);
    }
    return { url, headers, ...(hasCredential(headers) ? {} : { bearer: signIns.bearer({ userId, serverId: server.id, url: server.url }) }) };
  };

/** What the operator and the owner of a server say of its tools. */
function rulesOf(server: McpServer, policy: McpPolicy) {
  const entry = server.url !== '' ? entryOf(server.url, policy) : policy.stdio.find(({ name }) => name === server.operatorName);
  return { entry, approval: strictest(policy.approval, entry?.approval, server.approval) };
}

/** What holds of the tools of a server for a reader. */
const judging =
  ({ servers, policy }: Pick<McpToolsDeps, 'servers' | 'policy'>) =>
  async (reader: Reader, server: McpServer, definitions: readonly McpDefinition[]): Promise<readonly ServerTool[]> => {
    const { entry, approval } = rulesOf(server, policy());
    const approvals = await servers.approvals(reader.userId, server.id);
    return definitions.map((described) => {
      const definition = { ...described, digest: digestAt(server.url, described) };
      const { name, digest } = definition;
      const isAllowed = (server.tools?.includes(name) ?? true) && (entry?.tools?.includes(name) ?? true);
      const approved = approvals.get(name);
      return { server, definition, isAllowed, isApproved: approved === digest, approval, needsApproval: needsApproval(approval, definition, approved) };
    });
  };

/** Asks servers for as long as their user waits. */
const listing =
  (
    { servers, clock }: Pick<McpToolsDeps, 'servers' | 'clock'>,
    ask: {
      readonly of: (reader: Reader, server: McpServer, asked: Asking) => Promise<readonly ServerTool[]>;
      readonly noted: (server: McpServer, trouble: McpTrouble, said: string) => Promise<void>;
    },
  ) =>
  async (reader: Reader, { signal, refresh }: Asking, only?: ReadonlySet<number>): Promise<ListInTime> => {
    const wanted = await servers.usable(reader, only);
    const found = new Map<McpServer, readonly ServerTool[] | FailedServer>();
    const late = new NotInTime(`The MCP server did not answer within ${listMilliseconds / 1000} seconds.`);
    await timed({ clock, milliseconds: listMilliseconds, late, signal }, (within) =>
      fewAtOnce(unreachableLast(wanted), mostOfUser, async (server) => {
        const askedAt = clock.monotonic();
        try {
          found.set(server, await ask.of(reader, server, { signal: within, refresh }));
        } catch (error) {
          signal.throwIfAborted();
          found.set(server, { server, ...failureOf(error) });
          // one that was asked late is not known to be down
          if (error instanceof NotInTime && clock.monotonic() - askedAt >= listMilliseconds / 2) await ask.noted(server, 'unreachable', error.message);
        }
      }),
    );
    const all = wanted.map((server) => found.get(server)!);
    return {
      tools: all.flatMap((one) => ('server' in one ? [] : one.filter(({ isAllowed }) => isAllowed))),
      failed: all.flatMap((one) => ('server' in one ? [one] : [])),
    };
  };

const named = (tool: string, definitions: readonly McpDefinition[]) => definitions.filter(({ name }) => name === tool);

export function openMcpTools(deps: McpToolsDeps): McpTools {
  const { servers, sessions, signIns } = deps;
  const [placeOf, judged] = [placesOf(deps), judging(deps)];
  const noted = (server: McpServer, trouble: McpServer['state'], said: string | null) => servers.noted(server, trouble, said).catch(() => {});

  async function using<Result>(
    reader: Reader,
    server: McpServer,
    asked: Pick<SessionAsked, 'signal' | 'group'>,
    work: Parameters<McpSessions['use']>[1],
  ): Promise<Result> {
    const [{ id: serverId, url }, { userId }] = [server, reader];
    let place: RemoteServer | Program | undefined;
    try {
      place = await placeOf(reader, server);
      const [result, leftOut] = await sessions.use({ userId, serverId, place, ...asked }, async (session) => [await work(session), session.leftOut()] as const);
      await noted(server, 'ok', leftOut);
      return result as Result;
    } catch (error) {
      if (!(error instanceof McpFailure)) throw error;
      // who is to sign in is this user: others may be signed in
      if (error.trouble === 'sign-in' && place && 'bearer' in place) await signIns.needed({ userId, serverId, url });
      else await noted(server, error.trouble, error.message);
      throw error;
    }
  }

  const recent = (server: McpServer): number | undefined => (rulesOf(server, deps.policy()).approval === 'never' ? undefined : recentMilliseconds);

  async function listed(reader: Reader, server: McpServer, signal: AbortSignal, oldest: number | undefined): Promise<readonly ServerTool[]> {
    return judged(reader, server, await using(reader, server, { signal }, (session) => session.list(signal, oldest)));
  }
  const of = (reader: Reader, server: McpServer, { signal, refresh }: Asking) => listed(reader, server, signal, refresh ? 0 : recent(server));
  const known = (reader: Reader, server: McpServer, { signal, refresh }: Asking) => listed(reader, server, signal, refresh ? 0 : undefined);

  const inTime = listing(deps, { of: known, noted });

  async function oneOf(reader: Reader, id: number, tool: string, asking: Asking): Promise<ServerTool> {
    const found = (await of(reader, await servers.one(reader, id), asking)).find(({ definition }) => definition.name === tool);
    if (!found) throw unknownThing('tool');
    return found;
  }

  return {
    of: async (reader, id, asking) => of(reader, await servers.one(reader, id), asking),
    async all(reader, asking, only) {
      const wanted = await servers.usable(reader, only);
      const lists = await fewAtOnce(wanted, atOnce, (server) => of(reader, server, asking).catch(orNone(asking.signal)));
      return lists.flat().filter(({ isAllowed }) => isAllowed);
    },
    inTime,
    async call(reader, { server: id, tool, args, digest }, signal, elicit) {
      const server = await servers.one(reader, id);
      const called = using<McpResult>(reader, server, { signal, ...(elicit ? { group: elicit.group } : {}) }, async (session) => {
        const look = async (oldest: number | undefined) =>
          (await judged(reader, await servers.one(reader, id), named(tool, await session.list(signal, oldest))))[0];
        const last = await look(recent(server));
        // what was approved may be newer than the list of this session
        const found = digest !== undefined && last?.definition.digest !== digest ? await look(0) : last;
        if (!found) throw unknownThing('tool');
        if (!found.isAllowed) throw new Fault('forbidden', `The tool ${tool} is not allowed.`);
        if (digest !== undefined && found.definition.digest !== digest) throw new Fault('conflict', `The tool ${tool} has changed since it was approved.`);
        return session.call(tool, args, signal, elicit);
      });
      const result = await called.catch(async (error: unknown) => {
        // what is offered next is to be what there is now: another session lists it than the one that waits for users
        if (elicit && error instanceof Fault && error.code === 'conflict') await of(reader, server, { signal, refresh: true }).catch(() => {});
        throw error;
      });
      // many servers list their tools for everybody, and want a sign-in for calls
      if (!result.isError && server.signIn !== null && server.signIn !== 'connected')
        await signIns.worked({ userId: reader.userId, serverId: id, url: server.url });
      return result;
    },
    async approve(reader, { server: id, tool, digest }, by, signal) {
      const { definition } = await oneOf(reader, id, tool, { signal, refresh: true });
      if (digest !== undefined && digest !== definition.digest) throw new Fault('conflict', `The tool ${tool} has changed since.`, { field: 'digest' });
      await servers.approve(reader.userId, id, tool, definition.digest, by);
      return oneOf(reader, id, tool, { signal });
    },
    async signIn(reader, id, by) {
      const server = await servers.one(reader, id);
      const place = await placeOf(reader, server);
      if ('command' in place) throw unknownThing('sign-in');
      if (!place.bearer) throw new Fault('conflict', 'The headers of the MCP server have a credential of their own (authorization): remove it to sign in.');
      return signIns.begin({ userId: reader.userId, serverId: id, url: server.url }, place.headers, by);
    },
    remember: (userId, id, { name, digest }) => servers.approve(userId, id, name, digest, undefined),
  };
}
