import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { optionalOrNull } from '#http/schemas';
import { valueIn } from '#kit/json/value-in';
import type { McpRoutesDeps } from './routes.ts';
import { nativeFields, oauthOf, refuseStdio } from './shapes.ts';
import { permittedUrl } from './policy.ts';
import { mostServers, type McpServer, type ServerText } from './store.ts';
import { invalid } from '#core/fault';

const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const Text = Type.Object({ response: Type.String() });

const NativeServer = Type.Object({
  id: Type.Integer(),
  server_name: Type.String(),
  server_url: Type.String(),
  server_type: Type.String(),
  description: Type.String(),
  organization_id: Type.Null(),
  requires_auth: Type.Boolean(),
  oauth_status: Type.Enum(['none', 'needed', 'connected', 'failed']),
  metadata_json: Type.String(),
  is_active: Type.Boolean(),
  created_at: Type.String(),
  updated_at: Type.String(),
});

const named = (server: McpServer) => ({
  id: server.id,
  server_name: server.name,
  server_url: server.url,
  server_type: server.type,
  description: server.description,
  organization_id: null,
  requires_auth: server.hasHeaders || server.signIn !== null || server.state === 'sign-in',
  oauth_status: oauthOf(server),
  metadata_json: server.metadata ?? '{}',
  is_active: server.active,
  created_at: server.createdAt.toUTCString(),
  updated_at: server.updatedAt.toUTCString(),
});

/** The metadata must be JSON. @throws Fault `invalid` */
function metadataIn(text: string | null | undefined): string | null {
  if (text === undefined || text === null || text === '') return null;
  if (valueIn(text) === undefined) throw invalid('metadata_json', 'must be JSON');
  return text;
}

export const nativeMcpRoutes = (deps: Omit<McpRoutesDeps, 'sharing'>): readonly NounRoute[] => [...changingRoutes(deps), ...listingRoutes(deps)];

const common = { scope: 'mcp', owner: 'caller', output: Text } as const;

function changingRoutes({ servers, policy, changed }: Omit<McpRoutesDeps, 'sharing'>): readonly NounRoute[] {
  const remove = async (caller: Caller, server: number, by: Parameters<typeof servers.remove>[2]) => {
    await servers.remove(caller, server, by);
    changed(server);
    return {};
  };
  return [
    nounRoute('POST', '/server/add-mcp-server', {
      ...common,
      summary: 'Adds an MCP server of yours.',
      input: Type.Object(nativeFields),
      output: Type.Object({ response: Type.String(), server_id: Type.Integer() }),
      async answer({ caller, by, input }) {
        const { server_type: type, description } = input;
        refuseStdio(type ?? '', 'server_type');
        const text: ServerText = {
          name: input.server_name,
          url: permittedUrl(input.server_url, policy(), 'server_url').href,
          type: type ?? '',
          description: description ?? '',
          metadata: metadataIn(input.metadata_json),
          headers: undefined,
          tools: null,
          approval: null,
        };
        const server = await servers.add(caller.userId, text, by);
        return { response: 'MCP server added successfully', server_id: server.id };
      },
    }),
    nounRoute('PUT', '/server/update-mcp-server', {
      ...common,
      summary: 'Changes one of your MCP servers; what is left out stays as it is.',
      input: Type.Object({ server_id: id, ...Type.Partial(Type.Object(nativeFields)).properties }),
      async answer({ caller, by, input }) {
        const { server_id: server, server_name: name, server_url: url, server_type: type, description, metadata_json: metadata } = input;
        refuseStdio(type ?? '', 'server_type');
        const address = url === undefined ? undefined : permittedUrl(url, policy(), 'server_url').href;
        const text = (before: McpServer): ServerText => ({
          name: name ?? before.name,
          url: address ?? before.url,
          type: type ?? before.type,
          description: description ?? before.description,
          metadata: metadata === undefined ? before.metadata : metadataIn(metadata),
          headers: undefined,
          tools: before.tools,
          approval: before.approval,
        });
        await servers.change(caller, server, text, by);
        changed(server);
        return {};
      },
    }),
    nounRoute('DELETE', '/server/delete-mcp-server', {
      ...common,
      also: [{ method: 'POST', path: '/server/delete-mcp-server' }],
      summary: 'Deletes one of your MCP servers: nobody can use it any more.',
      input: Type.Object({ server_id: id }),
      answer: ({ caller, by, input }) => remove(caller, input.server_id, by),
    }),
  ];
}

function listingRoutes({ servers, tools, policy, met, enters }: Omit<McpRoutesDeps, 'sharing'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/list-mcp-servers', {
      ...common,
      summary: 'Your MCP servers, those shared with you, and those of the operator.',
      input: Type.Object({ include_inactive: optionalOrNull(Type.Boolean()) }),
      inputMayBeLeftOut: true,
      output: Type.Object({ response: Type.Array(NativeServer), count: Type.Integer() }),
      async answer({ caller, input: { include_inactive: inactive } }) {
        await met();
        const found = await servers.list(caller, { after: 0, limit: 10 * mostServers, inactive: inactive ?? false });
        return { response: found.map(named), count: found.length };
      },
    }),
    nounRoute('POST', '/server/list-mcp-whitelisted-servers', {
      ...common,
      summary: 'The addresses of MCP servers that the operator recommends, or alone allows.',
      output: Type.Array(Type.String()),
      answer: () => policy().whitelist.map(({ url }) => url),
    }),
    nounRoute('POST', '/server/list-mcp-tools', {
      ...common,
      summary: 'The tools of your MCP servers that you may call.',
      input: Type.Object({ refresh: optionalOrNull(Type.Boolean()) }),
      inputMayBeLeftOut: true,
      output: Type.Object({
        response: Type.Array(Type.Object({ tool: Type.Unknown(), server: Type.Unknown(), unique_id: Type.String() })),
        count: Type.Integer(),
        failed_servers: Type.Array(
          Type.Object({ id: Type.Integer(), name: Type.String(), state: Type.Enum(['unreachable', 'refused', 'sign-in']), error: Type.String() }),
          { description: 'Those that have no tools here, because they did not answer within five seconds or have refused.' },
        ),
      }),
      async answer({ caller, by, input: { refresh: asked }, signal }) {
        const refresh = asked ?? false;
        if (refresh) await enters({ caller, by, signal });
        await met();
        const { tools: found, failed } = await tools.inTime(caller, { signal, refresh });
        const response = found.map(({ server, definition: { name, description, inputSchema } }) => ({
          tool: { name, description, inputSchema },
          server: { id: server.id, name: server.name, type: server.type, description: server.description },
          unique_id: `${server.id}_${name}`,
        }));
        const failedServers = failed.map(({ server: { id: failing, name }, state, error }) => ({ id: failing, name, state, error }));
        return { response, count: response.length, failed_servers: failedServers };
      },
    }),
  ];
}
