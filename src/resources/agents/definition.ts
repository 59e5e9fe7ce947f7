import { Type, type Static } from 'typebox';
import type { Caller } from '#core/context';
import { Fault, invalid } from '#core/fault';
import type { JsonObject } from '#core/json';
import { requireNamedFields, requireSoundSchema, type SchemaChecks } from '../sound-schema.ts';
import { lineField, multiline } from '../text-fields.ts';
import type { AgentDefinition, AgentTool } from './types.ts';

const strict = { additionalProperties: false };
const id = { minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
const approval = Type.Optional(
  Type.Enum(['first', 'always', 'never'], { description: 'Whether the user is asked before its calls. Absent: before the first, where it may change things.' }),
);

const Tool = Type.Union([
  Type.Object(
    {
      type: Type.Literal('mcp'),
      server: Type.Integer(id),
      tools: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 300 }), { maxItems: 128, description: 'Absent: all of them.' })),
      approval,
    },
    strict,
  ),
  Type.Object({ type: Type.Literal('plugin'), plugin: Type.Integer(id), approval }, strict),
  Type.Object({ type: Type.Literal('dataset'), dataset: Type.Integer(id), approval }, strict),
  Type.Object(
    {
      type: Type.Literal('http'),
      name: Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: '^(?!read_scratch$|(?:agent|plugin)__|search_)[A-Za-z0-9_-]+$',
        expected: 'must have letters, digits, "-" and "_" only, and be no name of a tool of the gateway (read_scratch, agent__…, plugin__…, search_…)',
      }),
      description: Type.String({ minLength: 1, maxLength: 4000, ...multiline }),
      parameters: Type.Unsafe<JsonObject>(Type.Object({}, { description: 'JSON Schema of the arguments, an object schema.' })),
      request: Type.Unsafe<JsonObject>(
        Type.Object(
          {},
          { description: '`method`, `url`, `query`, `headers`, `body`, `answer`, as the request of a plugin, with places for arguments: `{{name}}`.' },
        ),
      ),
      approval,
    },
    strict,
  ),
  Type.Object({ type: Type.Literal('agent'), agent: Type.Integer(id), approval }, strict),
]);

export const AgentFields = Type.Object(
  {
    name: lineField(100),
    description: Type.Optional(Type.String({ maxLength: 1000, ...multiline })),
    mode: Type.Enum(['single', 'router', 'autonomous'], {
      description: 'single: one round of tools at most. router: one of its agents answers, whichever the model picks. autonomous: as many rounds as it takes.',
    }),
    instructions: Type.String({ minLength: 1, maxLength: 100_000, ...multiline }),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'Absent: the chat model of the settings.' })),
    tools: Type.Optional(Type.Array(Tool, { maxItems: 64 })),
    variables: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}, { description: 'JSON Schema of what a run may be given by name.' }))),
    limits: Type.Optional(
      Type.Object(
        {
          steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 25 })),
          calls: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
          seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
          tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })),
        },
        strict,
      ),
    ),
  },
  strict,
);
export type AgentFields = Static<typeof AgentFields>;

/** What an agent names must be there for whoever writes it. */
export interface AgentChecks {
  /** Each @throws Fault `not-found` */
  readonly mcp: (caller: Caller, id: number) => Promise<unknown>;
  readonly plugin: (caller: Caller, id: number) => Promise<unknown>;
  readonly dataset: (caller: Caller, id: number) => Promise<unknown>;
  readonly agent: (caller: Caller, id: number) => Promise<unknown>;
  /** @throws Fault `not-found` for a name that is no chat model of the caller's */
  readonly model: (caller: Caller, name: string) => void;
  /** @returns the request as it is stored. @throws Fault `invalid` naming a field that begins with `request` */
  readonly request: (request: JsonObject, parameters: JsonObject) => JsonObject;
  readonly isPattern: SchemaChecks['isPattern'];
}

/** What is stored of an agent as its author wrote it. @param own the agent that is changed @throws Fault `invalid` naming the field */
export async function definitionOf(given: AgentFields, caller: Caller, checks: AgentChecks, own?: number): Promise<AgentDefinition> {
  const { name, description = '', mode, instructions, model, tools: declared = [], variables, limits } = given;
  if (model) requireModel(model, caller, checks);
  const tools: AgentTool[] = [];
  for (const [at, tool] of declared.entries()) {
    const field = `tools[${at}]`;
    if (mode === 'router' && tool.type !== 'agent') throw invalid(`${field}.type`, 'must be agent: a router has agents alone');
    if (tool.type === 'agent' && tool.agent === own) throw invalid(`${field}.agent`, 'must be another agent');
    tools.push(await toolOf(tool, field, caller, checks));
  }
  if (mode === 'router' && tools.length === 0) throw invalid('tools', 'must have the agents that a router picks from');
  const names = tools.flatMap((tool) => (tool.type === 'http' ? [tool.name] : []));
  if (new Set(names).size < names.length) throw invalid('tools', 'must not have two requests of one name');
  if (variables) checkSchema(variables, 'variables', { isPattern: checks.isPattern, isClosed: true });
  if (JSON.stringify(given).length > 500_000) throw new Fault('too-large', 'An agent has at most 500000 characters.');
  return {
    name,
    description,
    mode,
    instructions,
    tools,
    ...(model ? { model } : {}),
    ...(variables ? { variables } : {}),
    ...(limits ? { limits: { ...limits } } : {}),
  };
}

function requireModel(name: string, caller: Caller, checks: AgentChecks): void {
  try {
    checks.model(caller, name);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'not-found') throw error;
    throw new Fault('invalid', error.message, { field: 'model', reason: 'model' });
  }
}

async function toolOf(tool: Static<typeof Tool>, field: string, caller: Caller, checks: AgentChecks): Promise<AgentTool> {
  switch (tool.type) {
    case 'mcp':
      await there(checks.mcp(caller, tool.server), `${field}.server`, 'an MCP server');
      return tool;
    case 'plugin':
      await there(checks.plugin(caller, tool.plugin), `${field}.plugin`, 'a plugin');
      return tool;
    case 'dataset':
      await there(checks.dataset(caller, tool.dataset), `${field}.dataset`, 'a dataset');
      return tool;
    case 'agent':
      await there(checks.agent(caller, tool.agent), `${field}.agent`, 'an agent');
      return tool;
    case 'http':
      checkSchema(tool.parameters, `${field}.parameters`, { isPattern: checks.isPattern });
      return { ...tool, request: requestOf(tool, field, checks) };
    default:
      return tool satisfies never;
  }
}

async function there(found: Promise<unknown>, field: string, what: string): Promise<void> {
  try {
    await found;
  } catch (error) {
    if (error instanceof Fault && error.code === 'not-found') throw invalid(field, `must be the id of ${what} that you may use`);
    throw error;
  }
}

function requestOf({ request, parameters }: { readonly request: JsonObject; readonly parameters: JsonObject }, field: string, checks: AgentChecks): JsonObject {
  try {
    return checks.request(request, parameters);
  } catch (error) {
    if (!(error instanceof Fault) || error.details.field === undefined) throw error;
    throw new Fault(error.code, `${field}.${error.message}`, { ...error.details, field: `${field}.${error.details.field}` });
  }
}

function checkSchema(schema: JsonObject, field: string, checks: SchemaChecks): void {
  requireNamedFields(schema, field);
  requireSoundSchema(schema, field, checks);
}
