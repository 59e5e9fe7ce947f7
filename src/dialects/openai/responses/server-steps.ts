import type { ForeignPart, Part, ServerStep, Tool, ToolCallPart, ToolResultPart, Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { textOf, type JsonObject } from '#core/json';
import { digestIn, itemPlace } from './encode-items.ts';
import { dialect } from './wire.ts';

/** What the gateway did with tools of MCP servers: as items of a response, and as the calls and results that models read. */

/** The item of a step. @param id of the item */
export function stepItem(id: string, step: ServerStep, status: 'in_progress' | 'completed' = 'completed'): JsonObject {
  switch (step.type) {
    case 'listed': {
      const tools = step.tools.map(({ name, description, parameters, isReadOnly }) => ({
        name,
        description: description ?? null,
        input_schema: parameters ?? {},
        annotations: { read_only: isReadOnly },
      }));
      return { id, type: 'mcp_list_tools', server_label: step.label, tools, ...(step.error === undefined ? {} : { error: step.error }) };
    }
    case 'called': {
      const isDone = status === 'completed';
      const { label, tool, json, text, isError, approval = null } = step;
      return {
        id,
        type: 'mcp_call',
        status: isDone && isError ? 'failed' : status,
        server_label: label,
        name: tool,
        arguments: json,
        output: isDone && !isError ? text : null,
        error: isDone && isError ? text : null,
        approval_request_id: approval,
      };
    }
    case 'asked':
      return { id, type: 'mcp_approval_request', server_label: step.label, name: step.tool, arguments: step.json };
    default:
      return step satisfies never;
  }
}

/** The step of an item that the gateway made; undefined for any other, such as those of providers. */
function stepOfItem(item: JsonObject): ServerStep | undefined {
  const { id, type, server_label: label, name, arguments: json, output, error, approval_request_id: approval } = item;
  if (typeof id !== 'string' || !itemPlace(id) || typeof label !== 'string') return undefined;
  if (type === 'mcp_list_tools') return { type: 'listed', label, tools: [] };
  if (typeof name !== 'string' || typeof json !== 'string') return undefined;
  const call = { id, label, tool: name, json };
  if (type === 'mcp_call') {
    const isError = error !== null && error !== undefined;
    const text = isError ? textOf(error) : textOf(output);
    return { type: 'called', ...call, text, isError, ...(typeof approval === 'string' ? { approval } : {}) };
  }
  const digest = type === 'mcp_approval_request' ? digestIn(id) : undefined;
  return digest === undefined ? undefined : { type: 'asked', ...call, digest };
}

/** The parts of a stored answer, with the ids that its steps have as items of the response. */
export function withItemIds(answer: readonly Part[], output: readonly JsonObject[]): readonly Part[] {
  const items = output.filter((item) => item['status'] !== 'in_progress' && stepOfItem(item) !== undefined).values();
  return answer.map((part) => {
    const item = part.type === 'foreign' && part.step ? items.next().value : undefined;
    return item ? partOfItem(item) : part;
  });
}

/** A part for an item: with its step, where the gateway made the item. */
export const partOfItem = (value: JsonObject): ForeignPart => {
  const step = stepOfItem(value);
  return { type: 'foreign', dialect, value, ...(step ? { step } : {}) };
};

const approvalType = 'mcp_approval_response';

interface Known {
  /** Calls that were approved, by the ids of the requests for that. */
  readonly called: ReadonlyMap<string, Extract<ServerStep, { type: 'called' }>>;
  /** What the client said to requests. */
  readonly said: ReadonlyMap<string, boolean>;
  readonly asked: ReadonlySet<string>;
}

/** The conversation without steps, which only clients read: with the calls and results that they stand for. @throws Fault `invalid` for an answer to a request that is not there */
export function withoutSteps(turns: readonly Turn[]): readonly Turn[] {
  const all = turns.flatMap(({ parts }) => parts.filter((part) => part.type === 'foreign'));
  const answers = all.filter(({ value }) => value['type'] === approvalType);
  if (answers.length === 0 && !all.some(({ step }) => step)) return turns;
  const found = all.flatMap(({ step }) => step ?? []);
  const known: Known = {
    called: new Map(found.flatMap((step) => (step.type === 'called' && step.approval !== undefined ? [[step.approval, step] as const] : []))),
    said: new Map(answers.map(({ value }) => [textOf(value['approval_request_id']), value['approve'] === true] as const)),
    asked: new Set(found.flatMap((step) => (step.type === 'asked' ? [step.id] : []))),
  };
  for (const id of known.said.keys())
    if (digestIn(id) !== undefined && !known.asked.has(id))
      throw new Fault('invalid', 'approval_request_id must be that of an mcp_approval_request in the conversation.', { field: 'input' });
  return turns.flatMap((turn) => (turn.role === 'model' ? modelTurns(turn, known) : withoutAnswers(turn, known)));
}

function withoutAnswers(turn: Turn, { asked }: Known): readonly Turn[] {
  const isKnown = (part: Part) => part.type === 'foreign' && part.value['type'] === approvalType && asked.has(textOf(part.value['approval_request_id']));
  if (!turn.parts.some(isKnown)) return [turn];
  const parts = turn.parts.filter((part) => !isKnown(part));
  return parts.length === 0 ? [] : [{ ...turn, parts }];
}

/** Calls that follow each other are of one turn, with their results behind it. */
function modelTurns(turn: Turn, known: Known): readonly Turn[] {
  const turns: Turn[] = [];
  let parts: Part[] = [];
  let results: ToolResultPart[] = [];
  const flush = () => {
    if (parts.length > 0) turns.push({ ...turn, parts });
    if (results.length > 0) turns.push({ role: 'user', parts: results });
    [parts, results] = [[], []];
  };
  for (const part of turn.parts) {
    const step = part.type === 'foreign' ? part.step : undefined;
    if (!step) {
      if (results.length > 0 && part.type !== 'tool-call') flush();
      parts.push(part);
      continue;
    }
    if (step.type === 'listed' || (step.type === 'called' && step.approval !== undefined && known.asked.has(step.approval))) continue;
    parts.push(callOf(step));
    results.push(resultOf(step, known));
  }
  flush();
  return turns;
}

const callOf = ({ id, label, tool, json }: Exclude<ServerStep, { type: 'listed' }>): ToolCallPart => ({
  type: 'tool-call',
  id,
  name: `${label}__${tool}`.replaceAll(/[^\w-]/g, '_').slice(0, 64),
  json: json === '' ? '{}' : json,
});

function resultOf(step: Exclude<ServerStep, { type: 'listed' }>, { called, said }: Known): ToolResultPart {
  const { id, label, tool, json } = step;
  const done = step.type === 'called' ? step : called.get(id);
  const result = (text: string, failed: boolean): ToolResultPart => ({
    type: 'tool-result',
    id,
    parts: [{ type: 'text', text: text === '' ? '(no text)' : text }],
    ...(failed ? { failed } : {}),
  });
  if (done) return result(done.text, done.isError);
  if (step.type === 'asked' && said.get(id)) return { ...result('The tool was not called.', true), approved: { id, label, tool, json, digest: step.digest } };
  return result('The user did not approve this call.', true);
}

/** The tools of a request: of servers whose lists are in the conversation none is given again. */
export function withListed(tools: readonly Tool[], turns: readonly Turn[]): readonly Tool[] {
  if (tools.length === 0) return tools;
  const listed = new Set(
    turns.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'foreign' && part.step?.type === 'listed' ? [part.step.label] : []))),
  );
  if (listed.size === 0) return tools;
  return tools.map((tool) =>
    tool.type === 'foreign' && tool.server && listed.has(tool.server.label) ? { ...tool, server: { ...tool.server, isListed: true } } : tool,
  );
}
