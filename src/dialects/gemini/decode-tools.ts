import type { GenerateCall, OtherServer } from '#core/call';
import type { FunctionTool, Tool, WebSearch } from '#core/conversation';
import { isEmpty, isObject, rest, type Json } from '#core/json';
import { invalid } from '#core/fault';
import { otherServer } from '../shared/other-server.ts';
import { bounded, isGiven } from '../shared/read-fields.ts';
import { termsOf } from '../shared/web-search.ts';
import { jsonSchemaOf } from './schema.ts';
import { carriedAs, dialect, type WireFunction, type WireTool } from './wire.ts';

/** Each function declaration becomes a tool; each other member of a tool becomes a foreign tool, unchanged. */
export function toolsOf(tools: readonly WireTool[]): readonly Tool[] {
  if (tools.length === 0) return [];
  const names = new Set<string>();
  return tools.flatMap((tool, at): readonly Tool[] => {
    const functions = (tool.functionDeclarations ?? []).map((one, place) => {
      const field = `tools[${at}].functionDeclarations[${place}]`;
      if (names.has(one.name)) throw invalid(`${field}.name`, 'is declared twice');
      names.add(one.name);
      return functionOf(one, field);
    });
    const others = Object.entries(rest(tool, new Set(['functionDeclarations'])));
    return [
      ...functions,
      ...others.map(([name, value]): Tool => ({
        type: 'foreign',
        ...(name === 'googleSearch' ? { search: searchOf(value) } : {}),
        dialect,
        value: { [name]: value },
      })),
    ];
  });
}

/** https://ai.google.dev/api/caching#McpServer */
export function otherServersOf(tools: readonly WireTool[] | null | undefined): Pick<GenerateCall, 'otherServers'> {
  if (!tools || tools.length === 0) return {};
  const otherServers = tools.flatMap((tool, at): readonly OtherServer[] => {
    const { mcpServers: servers } = tool as { readonly mcpServers?: unknown };
    const field = `tools[${at}].mcpServers`;
    if (!isGiven(servers)) return [];
    return Array.isArray(servers) ? servers.map((one: unknown, place) => addressed(one, `${field}[${place}]`)) : [{ field }];
  });
  return otherServers.length === 0 ? {} : { otherServers };
}

const addressed = (server: unknown, field: string): OtherServer =>
  otherServer(isObject(server) ? server['streamableHttpTransport'] : undefined, `${field}.streamableHttpTransport`, 'url');

const searchOf = (value: Json): WebSearch => termsOf(isObject(value) ? value : {}, { excludeDomains: 'blocked' });

const known = new Set(['name', 'description', 'parameters', 'parametersJsonSchema']);

/** A schema in this wire's own format is carried as well, so that it can be sent unchanged. */
function functionOf(one: WireFunction, field: string): FunctionTool {
  const { name, description, parameters, parametersJsonSchema } = one;
  if (!/^[A-Za-z_][\w.:-]*$/.test(name)) throw invalid(`${field}.name`, 'must be letters, digits, "_", ".", ":" and "-", and begin with a letter or "_"');
  if (isGiven(parameters) && isGiven(parametersJsonSchema)) throw invalid(`${field}.parametersJsonSchema`, 'cannot be combined with parameters');
  const carried: Record<string, Json> = rest(one, known);
  if (isGiven(parameters)) carried['.parameters'] = parameters;
  const schema = isGiven(parameters)
    ? jsonSchemaOf(bounded(parameters, `${field}.parameters`))
    : isGiven(parametersJsonSchema)
      ? bounded(parametersJsonSchema, `${field}.parametersJsonSchema`)
      : undefined;
  const type = schema?.['type'];
  if (isGiven(type) && type !== 'object') throw invalid(`${field}.${isGiven(parameters) ? 'parameters' : 'parametersJsonSchema'}.type`, 'must be "object"');
  return {
    type: 'function',
    name,
    ...(isGiven(description) ? { description } : {}),
    ...(schema && !isEmpty(schema) ? { parameters: schema } : {}),
    ...carriedAs(carried),
  };
}
