import { Type, type Static } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { mayCall } from '#core/mcp-offers';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import { McpFailure } from '#kit/mcp/connection';
import type { Reader } from '#store/grants';
import { isAdministrator, ownerOf, readerOf } from '../owner.ts';
import { ownQuery, ownThingRoutes } from '../own-things.ts';
import type { Sharing } from '../sharing.ts';
import type { McpPolicy } from './policy.ts';
import { nameOf } from './tool-names.ts';
import { ServerFields, ServerObject, shown, textOf } from './shapes.ts';
import type { SignIns } from './sign-ins.ts';
import { mostServers, type McpServerStore } from './store.ts';
import type { McpTools, ServerTool } from './tools.ts';

export interface McpRoutesDeps {
  readonly servers: McpServerStore;
  readonly tools: McpTools;
  readonly signIns: Pick<SignIns, 'forget'>;
  readonly policy: () => McpPolicy;
  /** Makes sure that the operator's servers have their rows. */
  readonly met: () => Promise<void>;
  /** Counts a request for which servers are asked. @throws Fault `rate-limited` */
  readonly enters: (request: { readonly caller: Caller; readonly by: Actor; readonly signal: AbortSignal }) => Promise<void>;
  /** Called when a server was changed or deleted. */
  readonly changed: (id: number) => void;
  readonly sharing: Sharing;
}

const root = '/server/mine/mcp-servers';

const ToolObject = Type.Object({
  name: Type.String(),
  description: Type.String(),
  inputSchema: Type.Unknown(),
  allowed: Type.Boolean(),
  digest: Type.String({ description: 'Of this definition.' }),
  approved: Type.Boolean({ description: 'Whether you have approved it as it is now.' }),
});

const toolShown = ({ definition: { name, description, inputSchema, digest }, isAllowed, isApproved }: ServerTool) => ({
  name,
  description,
  inputSchema,
  allowed: isAllowed,
  digest,
  approved: isApproved,
});

const query = ownQuery;
const idOf = (params: Readonly<Record<string, string>>) => idIn(params, 'id', 'MCP server');

/** A user's own MCP servers, those shared with them, and the operator's. */
export function mcpServerRoutes(deps: McpRoutesDeps): readonly NounRoute[] {
  const { servers, policy, met, changed, sharing } = deps;
  const own = ownThingRoutes({
    noun: 'mcp-servers',
    what: 'MCP server',
    scope: 'mcp',
    input: ServerFields,
    output: ServerObject,
    summaries: {
      list: 'Lists your MCP servers, those shared with you, and those of the operator.',
      make: `Adds an MCP server of yours; at most ${mostServers}.`,
      one: 'One of your MCP servers, with how it was when it was used last.',
      replace: 'Replaces one of your MCP servers.',
      remove: 'Deletes one of your MCP servers: nobody can use it any more.',
    },
    shown,
    rows: {
      ...servers,
      async list(reader, page) {
        await met();
        return servers.list(reader, page);
      },
    },
    make: (fields, { owner, by }) => servers.add(owner, textOf(fields, policy()), by),
    async replace(id, fields, { reader, by }) {
      const text = textOf(fields, policy());
      const server = await servers.change(reader, id, () => text, by);
      changed(server.id);
      return server;
    },
    async remove(id, { reader, by }) {
      const server = await servers.remove(reader, id, by);
      changed(server.id);
      return server;
    },
    sharing,
    mayGiveToEverybody: isAdministrator, // the descriptions of its tools come before the models of everybody
  });
  return [...own, ...toolRoutes(deps), ...signInRoutes(deps)];
}

function toolRoutes({ servers, tools, enters }: McpRoutesDeps): readonly NounRoute[] {
  const common = { scope: 'mcp', owner: 'caller', query } as const;
  /** @throws Fault `not-found` also for a user who is not there: what is everybody's would be theirs too */
  async function whoIs(caller: Caller, whose: Static<typeof query>): Promise<Reader> {
    const reader = readerOf(caller, whose);
    if (reader.userId !== caller.userId) await servers.checkUser(reader.userId);
    return reader;
  }
  return [
    nounRoute('GET', `${root}/:id/tools`, {
      ...common,
      summary: 'The tools of an MCP server, asked anew.',
      output: Type.Object({ items: Type.Array(ToolObject) }),
      async answer({ caller, by, params, query: whose, signal }) {
        await enters({ caller, by, signal });
        const found = await asFaults(async () => tools.of(await whoIs(caller, whose), idOf(params), { signal, refresh: true }));
        return { items: found.map(toolShown) };
      },
    }),
    nounRoute('POST', `${root}/:id/tools/:tool/approve`, {
      ...common,
      summary: 'Approves a tool for you, as it is now: when its definition changes, it is not approved any more.',
      input: closed({
        digest: Type.Optional(
          Type.String({ maxLength: 100, description: 'Of the definition that you have seen: where the tool has another by now, the answer is 409.' }),
        ),
      }),
      inputMayBeLeftOut: true,
      output: ToolObject,
      async answer({ caller, by, params, query: whose, input: { digest }, signal }) {
        await enters({ caller, by, signal });
        const tool = { server: idOf(params), tool: params['tool'] ?? '', digest };
        return toolShown(await asFaults(async () => tools.approve(await whoIs(caller, whose), tool, by, signal)));
      },
    }),
    nounRoute('POST', `${root}/:id/test`, {
      ...common,
      numbersAsWritten: true,
      summary: 'Connects to an MCP server, and calls one of its tools if you name one. Nobody is asked for an approval: whoever writes the call approves it.',
      input: closed({ tool: Type.Optional(Type.String({ maxLength: 128 })), arguments: Type.Optional(Type.Object({})) }),
      inputMayBeLeftOut: true,
      output: Type.Object({
        state: Type.Enum(['ok', 'unreachable', 'refused', 'sign-in']),
        milliseconds: Type.Integer(),
        tools: Type.Optional(Type.Array(Type.String())),
        result: Type.Optional(Type.Object({ text: Type.String(), isError: Type.Boolean() })),
        error: Type.Optional(Type.String()),
      }),
      async answer({ caller, by, params, query: whose, input: { tool, arguments: args = {} }, signal }) {
        await enters({ caller, by, signal });
        const [who, id, began] = [await whoIs(caller, whose), idOf(params), performance.now()];
        const milliseconds = () => Math.round(performance.now() - began);
        try {
          if (tool !== undefined) {
            if (caller.mcpTools && !mayCall(caller, nameOf(await servers.one(who, id), tool)))
              throw new Fault('forbidden', `The key may not call ${tool}.`, { field: 'tool', reason: 'scope' });
            const result = await tools.call(who, { server: id, tool, args: args as Record<string, unknown> }, signal);
            return { state: 'ok', milliseconds: milliseconds(), result };
          }
          const found = await tools.of(who, id, { signal, refresh: true });
          return { state: 'ok', milliseconds: milliseconds(), tools: found.map(({ definition }) => definition.name) };
        } catch (error) {
          if (!(error instanceof McpFailure)) throw error;
          return { state: error.trouble, milliseconds: milliseconds(), error: error.message };
        }
      },
    }),
  ];
}

function signInRoutes({ tools, signIns, enters }: McpRoutesDeps): readonly NounRoute[] {
  const common = { scope: 'mcp', owner: 'caller', query } as const;
  return [
    nounRoute('POST', `${root}/:id/oauth`, {
      ...common,
      summary: 'Begins to sign you in at an MCP server: open the address in a browser within ten minutes. Never open one that somebody else began.',
      output: Type.Object({ url: Type.String({ description: 'At the authorization server of the MCP server.' }) }),
      async answer({ caller, by, params, query: { owner = caller.userId }, signal }) {
        if (owner !== caller.userId || owner === 0)
          throw new Fault('forbidden', 'Users sign in at MCP servers themselves: nobody does it for another user.', { field: 'owner' });
        await enters({ caller, by, signal });
        return { url: await tools.signIn(caller, idOf(params), by) };
      },
    }),
    nounRoute('DELETE', `${root}/:id/oauth`, {
      ...common,
      summary: 'Forgets your sign-in at an MCP server, and its tokens: also at one that you may not use any more.',
      output: Type.Object({ id: Type.Integer({ description: 'Of the MCP server.' }), oauth: Type.Enum(['none']) }),
      async answer({ caller, by, params, query: whose }) {
        const id = idOf(params);
        if (!(await signIns.forget({ userId: ownerOf(caller, whose), serverId: id }, by))) throw unknownThing('sign-in');
        return { id, oauth: 'none' };
      },
    }),
  ];
}

/** What a server that fails is to a client. */
async function asFaults<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof McpFailure)) throw error;
    throw new Fault('upstream-failed', error.message, { cause: error });
  }
}
