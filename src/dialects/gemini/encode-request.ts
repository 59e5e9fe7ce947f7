import type { Quirks } from './quirks.ts';
import type { GenerateCall } from '#core/call';
import { isWebSearch, type Tool, type ToolChoice } from '#core/conversation';
import { absent, ignoredIn, noteOn } from '#core/capabilities';
import { isEmpty, own, type JsonObject } from '#core/json';
import { droppedExtra } from '#core/dropped-extra';
import type { EncodedRequest } from '../dialect.ts';
import { leftOut, unsupportedTerms } from '../shared/web-search.ts';
import { possibleChoice } from '../shared/tool-choice.ts';
import { describedSchema } from '../shared/read-fields.ts';
import { encodeConversation } from './encode-contents.ts';
import { support, supports } from './capabilities.ts';
import { budgetOf } from './thinking.ts';
import { dialect } from './wire.ts';

/**
 * Call → a content generation request. A field that the client did not send is not sent.
 *
 * @param _model is part of the URL
 * @returns `ignored`: what this wire does not support, as `field: reason`
 */
export function encodeRequest(call: GenerateCall, _model: string, quirks: Quirks = {}): EncodedRequest {
  const ignored = new Set([...droppedExtra(call, dialect).map((name) => `${name}: ${absent}`), ...ignoredIn(call, supports(quirks))]);
  const notes = own(call.extra, dialect);
  const { generationConfig: carriedConfig, toolConfig: carriedChoice, ...others } = notes;
  const carried = Object.fromEntries(Object.entries(others).filter(([name]) => !name.startsWith('.')));
  const { system, contents } = encodeConversation(call.turns, { ids: !quirks.withoutIds, signed: quirks.signed ?? false }, ignored);
  const tools = encodeTools(call, ignored);
  const possible = call.toolChoice && possibleChoice(call, { dialect, custom: false, search: false }, ignored);
  const config = {
    ...(carriedConfig as JsonObject | undefined),
    ...(notes['.config'] as JsonObject | undefined),
    ...encodeSampling(call, ignored),
    ...encodeOutput(call),
    ...encodeReasoning(call, quirks, ignored),
  };
  const choice = { ...(carriedChoice as JsonObject | undefined), ...(tools.length > 0 ? encodeChoice(possible, call) : {}) };
  return {
    body: {
      ...carried,
      ...(system ? { systemInstruction: { role: 'user', parts: system } } : {}),
      contents,
      ...(tools.length > 0 ? { tools } : {}),
      ...(isEmpty(choice) ? {} : { toolConfig: choice }),
      ...(isEmpty(config) ? {} : { generationConfig: config }),
    },
    ignored: [...ignored],
  };
}

function encodeSampling({ sampling }: GenerateCall, ignored: Set<string>): JsonObject {
  const { temperature, topP, topK, maxTokens, frequencyPenalty, presencePenalty, candidates, seed, stop, logprobs } = sampling;
  const fields = {
    temperature,
    topP,
    topK,
    candidateCount: candidates,
    maxOutputTokens: maxTokens,
    stopSequences: stop,
    seed: seedOf(seed, ignored),
    presencePenalty,
    frequencyPenalty,
    ...(logprobs === undefined ? {} : { responseLogprobs: true, ...(logprobs > 0 ? { logprobs } : {}) }),
  };
  return Object.fromEntries(Object.entries(fields).filter((field): field is [string, Exclude<(typeof field)[1], undefined>] => field[1] !== undefined));
}

/** The wire's seed has 32 bits. */
function seedOf(seed: number | undefined, ignored: Set<string>): number | undefined {
  if (seed === undefined || (seed >= -(2 ** 31) && seed < 2 ** 31)) return seed;
  ignored.add(noteOn('seed', support));
  return seed | 0;
}

function encodeOutput({ output, extra }: GenerateCall): JsonObject {
  switch (output.type) {
    case 'text':
      return {};
    case 'json':
      return { responseMimeType: 'application/json' };
    case 'schema': {
      const asItCame = own(extra, dialect)['.responseSchema'];
      return {
        responseMimeType: 'application/json',
        ...(asItCame === undefined ? { responseJsonSchema: describedSchema(output.schema, output.description) } : { responseSchema: asItCame }),
      };
    }
    default:
      return output satisfies never;
  }
}

/** The client's own thinking settings where it spoke this wire, else derived from its effort. */
function encodeReasoning({ reasoning, extra }: GenerateCall, { withoutThinking, refusedEfforts = [] }: Quirks, ignored: Set<string>): JsonObject {
  const asItCame = own(extra, dialect)['.thinkingConfig'];
  if (asItCame !== undefined) return { thinkingConfig: asItCame };
  if (!reasoning) return {};
  if (withoutThinking) {
    ignored.add(noteOn('reasoning_effort', supports({ withoutThinking })));
    return {};
  }
  const { effort } = reasoning;
  if (effort !== undefined && refusedEfforts.includes(effort)) {
    ignored.add(`reasoning_effort: this model does not accept ${effort}.`);
    return effort === 'none' ? {} : { thinkingConfig: { includeThoughts: true } };
  }
  if (effort === 'none') return { thinkingConfig: { thinkingBudget: 0 } };
  return { thinkingConfig: { ...(effort === undefined ? {} : { thinkingBudget: budgetOf(effort) }), includeThoughts: true } };
}

/** All functions are declared in one tool; each provider tool is one of its own. */
function encodeTools({ tools, toolChoice }: GenerateCall, ignored: Set<string>): readonly JsonObject[] {
  const functions: JsonObject[] = [];
  const others: JsonObject[] = [];
  for (const tool of tools) {
    const encoded = encodeTool(
      tool,
      tools.some(({ type }) => type === 'function'),
      ignored,
    );
    if (!encoded) continue;
    if (tool.type === 'foreign') others.push(encoded);
    // The API has no `auto` mode for a subset of the functions: only that subset is declared.
    else if (toolChoice?.type !== 'allowed' || toolChoice.names.includes(tool.name)) functions.push(encoded);
  }
  return [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others];
}

/** @param functions does the call have any? Most models accept no search beside them. */
function encodeTool(tool: Tool, functions: boolean, ignored: Set<string>): JsonObject | undefined {
  switch (tool.type) {
    case 'function': {
      const { '.parameters': asItCame, ...carried } = own(tool.extra, dialect);
      const { name, description, parameters, strict } = tool;
      if (strict) ignored.add("strict: the provider's interface has no strict tools.");
      const schema = asItCame !== undefined ? { parameters: asItCame } : parameters ? { parametersJsonSchema: parameters } : {};
      return { ...carried, name, ...(description === undefined ? {} : { description }), ...schema };
    }
    case 'custom':
      ignored.add(noteOn('tools', support));
      return undefined;
    case 'foreign':
      if (tool.dialect === dialect) return tool.value;
      if (isWebSearch(tool) && !functions) {
        for (const one of unsupportedTerms(tool.search, [])) ignored.add(one);
        return { googleSearch: {} };
      }
      ignored.add(leftOut(tool));
      return undefined;
    default:
      return tool satisfies never;
  }
}

function encodeChoice(choice: ToolChoice | undefined, { extra }: GenerateCall): { readonly functionCallingConfig?: JsonObject } {
  if (!choice) return {};
  switch (choice.type) {
    case 'auto':
      return { functionCallingConfig: { mode: own(extra, dialect)['.validated'] ? 'VALIDATED' : 'AUTO' } };
    case 'none':
      return { functionCallingConfig: { mode: 'NONE' } };
    case 'required':
      return { functionCallingConfig: { mode: 'ANY' } };
    case 'tool':
      return { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [choice.name] } };
    case 'allowed':
      return { functionCallingConfig: choice.mode === 'auto' ? { mode: 'AUTO' } : { mode: 'ANY', allowedFunctionNames: choice.names } };
    default:
      return choice satisfies never;
  }
}
