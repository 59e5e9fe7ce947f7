import { type GenerateCall, plainCall } from '#core/call';
import type { Caller, Choices, Context } from '#core/context';
import { textTurn } from '#core/conversation';
import type { ConvertDocument } from '#core/document';
import { Fault, invalid, missing } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import type { RunLimits, Runs } from '#core/run';
import type { UploadedFile } from '#http/uploads';
import { asWritten, withNumbersOf } from '#kit/json/numbers';
import { schemaWords } from '../schema-words.ts';
import { objectKeepsTo } from '../keeps-to.ts';
import { inOwnCodes, nativeContext } from '../native-context.ts';
import { turnsOf, type AgentAsked } from './loop.ts';
import type { AgentStore } from './store.ts';
import type { AgentToolsDeps } from './tools.ts';
import { isOwn, type Agent, type AgentDefinition, type OwnAgent } from './types.ts';

export interface NativeAgentDeps extends Pick<AgentToolsDeps, 'keepsTo' | 'defaultModel'> {
  readonly agents: AgentStore;
  readonly runs: Pick<Runs, 'begin' | 'follow' | 'one' | 'cancel'>;
  /** Checks that a call could be made and paid for. @throws Fault */
  readonly affords: (call: GenerateCall, context: Context) => Promise<void>;
  /** Absent: files are not read. */
  readonly convert: ConvertDocument | undefined;
  /** The longest time at work. */
  readonly seconds: () => number;
}

/** What a run of an agent is begun with. */
export interface Beginning {
  readonly caller: Caller;
  readonly agent: Agent | OwnAgent;
  readonly input: {
    readonly message: string;
    readonly variables?: JsonObject | undefined;
    readonly conversation_history?: readonly { readonly message: string; readonly user: 'me' | 'system' }[] | undefined;
  };
  readonly files: readonly UploadedFile[];
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** Of the client. */
  readonly address?: string | undefined;
  readonly choices?: Choices | undefined;
}

const [usualSteps, usualCalls, usualTokens] = [25, 100, 1_000_000];

/** Begins a run of a stored version: of the request it takes what it is to be told, and nothing else. @throws Fault `invalid` naming the field */
export async function begun({ caller, agent, input, files, signal, requestId, address, choices = {} }: Beginning, deps: NativeAgentDeps): Promise<string> {
  const { definition, version } = agent;
  if (input.message.trim() === '') throw invalid('message', 'must have a question in it');
  const variables = await variablesOf(input.variables, definition, { owner: String(caller.userId), signal }, deps);
  const { app = caller.keyName, ...chosen } = choices;
  const history = (input.conversation_history ?? [])
    .filter(({ message }) => message.trim() !== '')
    .map(({ user, message }) => ({ isUser: user === 'me', message }));
  const affords = (texts: AgentAsked['files']) => {
    const turns = [textTurn('system', definition.instructions), ...turnsOf({ history, variables: variables ?? null, files: texts }, input.message)];
    const call = plainCall({ model: definition.model ?? deps.defaultModel(), turns, stream: true });
    return deps.affords(call, { ...nativeContext({ caller, requestId, signal }), ...chosen }).catch((error: unknown) => {
      throw inOwnCodes(error);
    });
  };
  await affords([]);
  const texts = await textsOf(files, caller, signal, deps);
  if (texts.length > 0) await affords(texts);
  const more: AgentAsked = {
    agentId: agent.id,
    definition,
    ownerId: 'owner' in agent ? agent.owner : null,
    isOwn: isOwn(agent, caller.userId),
    history,
    variables: (asWritten(variables) as JsonObject | undefined) ?? null,
    files: texts,
  };
  return deps.runs.begin({
    kind: 'agent',
    agentId: agent.id,
    version,
    asked: { message: input.message, address, more: more as unknown as JsonObject, ...chosen },
    limits: limitsOf(definition, deps.seconds()),
    requestId,
    caller,
    app,
  });
}

const limitsOf = ({ limits = {} }: AgentDefinition, seconds: number): RunLimits => ({
  steps: limits.steps ?? usualSteps,
  calls: limits.calls ?? usualCalls,
  seconds: Math.min(limits.seconds ?? seconds, seconds),
  tokens: limits.tokens ?? usualTokens,
});

/** Bytes of all variables as JSON. */
const mostVariables = 262_144;

/** The variables of a run: data, and read as nothing else. @throws Fault `invalid` naming one that is not declared or does not keep to its schema; `too-large` */
async function variablesOf(
  given: JsonObject | undefined,
  { variables: schema }: AgentDefinition,
  asking: { readonly owner: string; readonly signal: AbortSignal },
  { keepsTo }: Pick<NativeAgentDeps, 'keepsTo'>,
): Promise<JsonObject | undefined> {
  const values = given ?? {};
  if (Buffer.byteLength(JSON.stringify(values)) > mostVariables)
    throw new Fault('too-large', `variables must have at most ${mostVariables} bytes.`, { field: 'variables' });
  const names = Object.keys(values);
  if (names.includes('__proto__')) throw invalid('variables.__proto__', 'is not known');
  if (!schema) return given;
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const unknown = names.find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) throw invalid(`variables.${unknown.slice(0, 100)}`, 'is not known');
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  const absent = required.find((name): name is string => typeof name === 'string' && !names.includes(name));
  if (absent !== undefined) throw missing(`variables.${absent}`);
  if (await objectKeepsTo(keepsTo, schema, values, asking)) return given;
  const { required: _, ...rest } = schema;
  for (const name of names) {
    const property = properties[name] as JsonObject;
    const alone = { ...rest, properties: { [name]: property } };
    if (!(await objectKeepsTo(keepsTo, alone, withNumbersOf(values, { [name]: values[name]! }), asking)))
      throw invalid(`variables.${name}`, isObject(property) ? `must be ${schemaWords(property, 'agent')}` : 'does not keep to what the agent declares');
  }
  throw invalid('variables', 'do not keep to what the agent declares');
}

/** Characters of one file, and files of a run. */
const [mostOfFile, mostFiles] = [1_000_000, 10];

async function textsOf(files: readonly UploadedFile[], { userId }: Caller, signal: AbortSignal, { convert }: NativeAgentDeps): Promise<AgentAsked['files']> {
  if (files.length > mostFiles) throw invalid('file', `must be given at most ${mostFiles} times`);
  if (files.length > 0 && !convert) throw new Fault('unsupported', 'file: files are not read by this server.', { field: 'file' });
  const texts: { name: string; text: string }[] = [];
  for (const { filename, content } of files) {
    const name = filename.slice(0, 200).toWellFormed();
    const { text } = await convert!(content, { filename, owner: String(userId), signal }).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error;
      throw new Fault(error.code, `file ${name}: ${error.message}`, { ...error.details, field: 'file' });
    });
    if (text.length > mostOfFile) throw new Fault('too-large', `file ${name}: its text is longer than ${mostOfFile} characters.`, { field: 'file' });
    texts.push({ name, text: text.toWellFormed() });
  }
  return texts;
}
