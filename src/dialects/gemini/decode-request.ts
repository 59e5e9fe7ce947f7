import { checked } from '#kit/json/check';
import type { GenerateCall, Output, Reasoning } from '#core/call';
import type { Sampling } from '#core/sampling';
import type { ToolChoice } from '#core/conversation';
import { Fault, invalid } from '#core/fault';
import { isEmpty, rest, type Extra, type Json, type JsonObject } from '#core/json';
import { carriedOf, carryUnknown } from '../shared/nested-members.ts';
import { bounded, isGiven, bodyFault } from '../shared/read-fields.ts';
import { hasPieces, turnsOf } from './decode-contents.ts';
import { otherServersOf, toolsOf } from './decode-tools.ts';
import { jsonFormatOf } from './response-format.ts';
import { jsonSchemaOf } from './schema.ts';
import { withClientSpelling } from './spelling.ts';
import { effortOf, isDefaultLevel, levelEffort } from './thinking.ts';
import { askedTier } from './usage.ts';
import { CountRequest, dialect, GenerateRequest, type WireConfig } from './wire.ts';

const check = checked(GenerateRequest, bodyFault);
const checkCount = checked(CountRequest, bodyFault);

/** Members that the call has a member for. All others are carried. */
const understood = new Set(['model', 'contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig']);
const configUnderstood = new Set(
  'temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema responseJsonSchema seed presencePenalty frequencyPenalty responseLogprobs logprobs thinkingConfig'.split(
    ' ',
  ),
);

const thinkingUnderstood = new Set(['thinkingBudget', 'thinkingLevel', 'includeThoughts']);
const contentUnderstood = new Set(['role', 'parts']);

/** What the URL of a request contains. */
export interface Addressed {
  readonly model: string;
  readonly stream: boolean;
}

/** A content generation request → call. @param body parsed JSON. @throws Fault `invalid`, naming the field as the client spelled it */
export const decodeRequest = (body: unknown, asked: Addressed): GenerateCall => withClientSpelling(body, (value) => callOf(check(value), asked));

/** A token count request → call. @throws Fault `invalid` */
export function decodeCount(body: unknown, model: string): GenerateCall {
  return withClientSpelling(body, (value) => {
    const { contents, generateContentRequest, ...request } = checkCount(value);
    if (generateContentRequest) return callOf(generateContentRequest, { model, stream: false });
    if (!isGiven(contents) || contents.length === 0) throw new Fault('invalid', 'contents is required.', { field: 'contents', reason: 'missing' });
    return callOf({ ...request, contents }, { model, stream: false });
  });
}

function callOf(request: GenerateRequest, asked: Addressed): GenerateCall {
  const config = request.generationConfig ?? {};
  const { toolChoice, carried: choiceCarried } = choiceOf(request.toolConfig);
  const reasoning = reasoningOf(config.thinkingConfig);
  const { output, notes } = outputOf(config);
  const turns = turnsOf(request.contents, request.systemInstruction);
  return {
    dialect,
    ...asked,
    turns,
    ...(hasPieces(turns) ? { inPieces: true } : {}),
    tools: toolsOf(request.tools ?? []),
    ...(toolChoice ? { toolChoice } : {}),
    output,
    sampling: samplingOf(config),
    ...(reasoning ? { reasoning } : {}),
    ...askedTier(request.serviceTier),
    ...otherServersOf(request.tools),
    extra: extraOf(request, config, { ...choiceCarried, ...notes }),
  };
}

function samplingOf(config: WireConfig): Sampling {
  const sampling: { -readonly [Key in keyof Sampling]: Sampling[Key] } = {};
  const { temperature, topP, topK, candidateCount, maxOutputTokens, stopSequences, seed, presencePenalty, frequencyPenalty } = config;
  if (isGiven(temperature)) sampling.temperature = temperature;
  if (isGiven(topP)) sampling.topP = topP;
  if (isGiven(topK)) sampling.topK = topK;
  if (isGiven(candidateCount)) sampling.candidates = candidateCount;
  if (isGiven(maxOutputTokens)) sampling.maxTokens = maxOutputTokens;
  const stop = stopSequences?.filter((one) => one !== '') ?? [];
  if (stop.length > 0) sampling.stop = stop;
  if (isGiven(seed)) sampling.seed = seed;
  if (isGiven(presencePenalty)) sampling.presencePenalty = presencePenalty;
  if (isGiven(frequencyPenalty)) sampling.frequencyPenalty = frequencyPenalty;
  if (config.responseLogprobs) sampling.logprobs = config.logprobs ?? 0;
  return sampling;
}

function outputOf(config: WireConfig): { readonly output: Output; readonly notes: JsonObject } {
  const { responseMimeType: type, responseSchema, responseJsonSchema } = config;
  if (isGiven(responseSchema) && isGiven(responseJsonSchema)) throw invalid('generationConfig.responseJsonSchema', 'cannot be combined with responseSchema');
  const schema = isGiven(responseSchema)
    ? jsonSchemaOf(bounded(responseSchema, 'generationConfig.responseSchema'))
    : isGiven(responseJsonSchema)
      ? bounded(responseJsonSchema, 'generationConfig.responseJsonSchema')
      : undefined;
  const format = schema || isGiven(type) ? undefined : jsonFormatOf(config.responseFormat);
  if (format) {
    const bound = format.schema && bounded(format.schema, 'generationConfig.responseFormat');
    return { output: bound ? { type: 'schema', schema: bound } : { type: 'json' }, notes: { '.responseFormat': config.responseFormat! } };
  }
  if (isGiven(type) && type !== '' && type !== 'application/json') {
    // A type other than JSON is carried for providers of this wire.
    const others = {
      responseMimeType: type,
      ...(isGiven(responseSchema) ? { responseSchema } : {}),
      ...(isGiven(responseJsonSchema) ? { responseJsonSchema } : {}),
    };
    if (type === 'text/x.enum' && schema && Array.isArray(schema['enum']))
      return { output: { type: 'schema', schema, bare: true }, notes: { '.config': others } };
    if (type === 'text/plain' && schema) throw invalid('generationConfig.responseMimeType', 'must be application/json if there is a schema');
    return { output: { type: 'text' }, notes: type === 'text/plain' ? {} : { '.config': others, 'generationConfig.responseMimeType': type } };
  }
  if (schema) return { output: { type: 'schema', schema }, notes: isGiven(responseSchema) ? { '.responseSchema': responseSchema } : {} };
  return { output: { type: type === 'application/json' ? 'json' : 'text' }, notes: {} };
}

function reasoningOf(config: WireConfig['thinkingConfig']): Reasoning | undefined {
  if (!isGiven(config)) return undefined;
  const { thinkingBudget: budget, thinkingLevel: level, includeThoughts } = config;
  const effort = isGiven(level) ? levelEffort(level) : isGiven(budget) && budget >= 0 ? effortOf(budget) : undefined;
  const hidden = includeThoughts ? {} : { hidden: true };
  if (effort === undefined) return includeThoughts || isGiven(level) || isGiven(budget) ? hidden : undefined;
  return { effort, ...(isGiven(budget) && budget > 0 && !isGiven(level) ? { budget } : {}), ...hidden };
}

const none = new Set<string>();
const modes = new Set(['AUTO', 'ANY', 'NONE', 'VALIDATED', 'MODE_UNSPECIFIED']);

/** `VALIDATED` is a variant of `AUTO` that only providers of this wire know: it is carried as a note. */
function choiceOf(config: GenerateRequest['toolConfig']): { readonly toolChoice?: ToolChoice; readonly carried: JsonObject } {
  if (!isGiven(config)) return { carried: {} };
  const others = rest(config, new Set(['functionCallingConfig']));
  const carried: Record<string, Json> = Object.fromEntries(Object.entries(others).map(([name, value]) => [`toolConfig.${name}`, value]));
  const { mode: given, allowedFunctionNames: names, ...calling } = config.functionCallingConfig ?? {};
  for (const [name, value] of Object.entries(rest(calling, none))) carried[`toolConfig.functionCallingConfig.${name}`] = value;
  const mode = given?.toUpperCase();
  const field = 'toolConfig.functionCallingConfig';
  if (mode !== undefined && !modes.has(mode)) throw invalid(`${field}.mode`, 'must be AUTO, ANY, NONE or VALIDATED');
  if (isGiven(names) && names.length > 0) {
    if (mode !== 'ANY' && mode !== 'VALIDATED') throw invalid(`${field}.allowedFunctionNames`, 'requires the mode ANY or VALIDATED');
    const [only] = names;
    if (mode === 'ANY' && names.length === 1) return { toolChoice: { type: 'tool', name: only! }, carried };
    if (mode === 'ANY') return { toolChoice: { type: 'allowed', names, mode: 'required' }, carried };
    return { toolChoice: { type: 'allowed', names, mode: 'auto' }, carried: { ...carried, '.validated': true } };
  }
  if (mode === 'ANY') return { toolChoice: { type: 'required' }, carried };
  if (mode === 'NONE') return { toolChoice: { type: 'none' }, carried };
  if (mode === 'VALIDATED') return { toolChoice: { type: 'auto' }, carried: { ...carried, '.validated': true } };
  return mode === 'AUTO' ? { toolChoice: { type: 'auto' }, carried } : { carried };
}

/** Names with a leading dot keep the client's own spelling of what the call has in core terms. */
function extraOf(request: GenerateRequest, config: WireConfig, notes: JsonObject): Extra {
  const carried: Record<string, Json> = { ...carriedOf(request, understood), ...notes };
  if (isGiven(config.thinkingConfig)) {
    carried['.thinkingConfig'] = config.thinkingConfig;
    carryUnknown(carried, 'generationConfig.thinkingConfig', config.thinkingConfig, thinkingUnderstood);
    const { thinkingLevel: level } = config.thinkingConfig; // only providers of this wire may know others
    if (isGiven(level) && !isDefaultLevel(level) && levelEffort(level) === undefined) carried['generationConfig.thinkingConfig.thinkingLevel'] = level;
  }
  const others = rest(config, configUnderstood);
  if ('.responseFormat' in notes) delete others['responseFormat'];
  for (const [name, value] of Object.entries(others)) carried[`generationConfig.${name}`] = value;
  carryUnknown(carried, 'systemInstruction', request.systemInstruction, contentUnderstood);
  if (Array.isArray(carried['safetySettings']) && carried['safetySettings'].length === 0) delete carried['safetySettings'];
  return isEmpty(carried) ? {} : { [dialect]: carried };
}
