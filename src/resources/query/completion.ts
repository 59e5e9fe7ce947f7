import { isWholeObject, objectBy } from '#kit/json/foreign';
import { asWritten, parseAsWritten } from '#kit/json/numbers';
import type { GenerateResult } from '#core/fold';
import type { Context } from '#core/context';
import { isCut, type FinishReason } from '#core/event';
import { warn } from '#core/ignoring';
import type { ToolCallPart } from '#core/conversation';
import { shownIn, soundsIn } from '#core/shown-media';
import { citationMarksIn } from '#kit/text/citation-marks';
import { citedPassage } from '../cited-passage.ts';
import type { Completion } from './fields.ts';
import { referencesOf, type Material } from './material.ts';

export interface CompletionDeps {
  readonly uuid: string;
  readonly persona: number;
  /** Names with commas between them, `all` or `none`. */
  readonly datasets: string;
  readonly material: Material;
  readonly wantsUsage: boolean;
  /** Stands before the answer. */
  readonly prefix: string;
  /** ISO 8601. */
  readonly at: string;
}

/** An answer as clients of the native interface read it. */
export function completionOf(result: GenerateResult, { progress }: Context, deps: CompletionDeps): Completion {
  const { material } = deps;
  const { parts = [], reason = 'stop' } = result.candidates[0] ?? {};
  const message = deps.prefix + shownIn(parts);
  warn(soundsIn(parts), progress);
  const called = parts.filter((part) => part.type === 'tool-call');
  const last = called.at(-1); // those before it are complete
  const calls = last && isCut(reason) && !isWholeObject(last.json) ? called.slice(0, -1) : called;
  if (calls.length < called.length) warn(['tools: the answer ended within a call of a tool, which is left out'], progress);
  const sent = deps.wantsUsage ? (progress.booked ?? result.usage) : undefined;
  return {
    ...emptyCompletion(deps.uuid, message),
    type: 'completion',
    references: referencesOf(material),
    embedding_down: material.vectorsDown, // the vectors are passed over for no other reason
    vectors_down: material.vectorsDown,
    tool_calls: calls.length > 0 ? calls.map(({ id, name, json }) => ({ id, type: 'function', function: { name, arguments: json } })) : null,
    tool_calls_unified: calls.map(({ id, name, json }) => ({ id, name, arguments: argumentsIn(json), ...waitingOf(id, progress) })),
    tool_responses: (progress.called ?? []).map(({ id, name, text, isError }) => ({ id, name, response: text, is_error: isError })),
    usage: sent ? usageOf(sent, progress.planTokens ?? 0) : null,
    provenance: {
      model: result.started.model,
      datasets: deps.datasets,
      persona: { id: deps.persona, version: null },
      agents: [],
      timestamp: deps.at,
    },
    citations: citationsOf(message, material),
    sources: material.web.map(({ title, url }, at) => ({ index: material.passages.length + at + 1, title, url })),
    error: message.trim() === '' && calls.length === 0 ? withoutText[reason] : null,
  };
}

/** Why there is nothing to read: this interface has no other place for how an answer ended. */
const withoutText: Readonly<Record<FinishReason, string>> = {
  refused: 'The model, or a filter of its provider, refused to answer.',
  length: 'The model reached the most tokens of an answer before it wrote any text.',
  stop: 'The answer ended without any text.',
  tool: 'The answer ended without any text.',
};

/** What more is said of a call of an MCP tool. */
function waitingOf(id: string, { waiting }: Context['progress']): { server_id: number; needs_approval: true } | undefined {
  const call = waiting?.calls.find((one) => one.id === id);
  return call && { server_id: call.server, needs_approval: true };
}

/** What has come of an answer so far. */
export const emptyCompletion = (uuid: string, message: string): Completion => ({
  message,
  uuid,
  type: 'yield',
  references: '',
  embedding_down: false,
  vectors_down: false,
  added_obj: null,
  tool_calls: null,
  tool_calls_unified: [],
  tool_responses: [],
  usage: null,
  provenance: null,
  citations: [],
  sources: [],
  error: null,
});

function citationsOf(message: string, { passages }: Material): Completion['citations'] {
  if (passages.length === 0) return [];
  const marks = citationMarksIn(message);
  return passages.map((passage, at) => ({
    index: at + 1,
    ...citedPassage(passage),
    at: marks.flatMap(({ numbers, start, end }) => (numbers.includes(at + 1) ? [[start, end]] : [])),
  }));
}

function usageOf({ input, output }: { readonly input: number; readonly output: number }, planTokens: number): Completion['usage'] {
  const tokens = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  return { model_tokens: tokens, ...tokens, plan_tokens: planTokens };
}

/** For `JSON.stringify`, which writes each number as the model wrote it. */
const argumentsIn = (json: ToolCallPart['json']): unknown => objectBy(json, (text) => asWritten(parseAsWritten(text))) ?? {};
