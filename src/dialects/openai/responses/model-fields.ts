import { isTranslated, type GenerateCall } from '#core/call';
import { isDefault } from '#core/dropped-extra';
import { isObject, own, type Json, type JsonObject } from '#core/json';
import { jsonInstruction } from '../../shared/json-instruction.ts';
import { acceptedEffort, type KnownEfforts } from '../accepted-effort.ts';
import { thinkingOf, type RefusedFields } from '../thinking.ts';
import { dialect, sisterFields } from './wire.ts';

/** Fields that some models refuse, or accept with other values. A client of this wire keeps what it wrote. */

export function sentEffort(call: GenerateCall, quirks: KnownEfforts, ignored?: Set<string>): string | undefined {
  const effort = call.reasoning?.effort;
  if (effort === undefined || !isTranslated(call, dialect)) return effort;
  const accepted = acceptedEffort(effort, quirks);
  if (accepted === effort) return effort;
  ignored?.add(`reasoning_effort: this model does not accept ${effort}${accepted === undefined ? '' : `; ${accepted} is sent instead`}.`);
  return accepted;
}

/** What a model accepts of settings for reasoning. */
export interface ReasoningQuirks extends KnownEfforts {
  /** It refuses to show summaries of its reasoning, as to organizations that are not verified. */
  readonly withoutSummary?: true;
}

/**
 * The settings for reasoning. Clients of other wires are shown thoughts where they ask for thinking, and on this wire a model shows none unless it is asked to. A model
 * that does not reason gets none of these settings, whoever wrote them: codex names an effort to every model.
 */
export function encodeReasoning(
  call: GenerateCall,
  quirks: ReasoningQuirks,
  ignored: Set<string>,
): { readonly effort?: string; readonly reasoning: JsonObject } {
  const written = own(call.extra, dialect)['.reasoning'] as JsonObject | undefined;
  const translated = isTranslated(call, dialect);
  if (!translated && quirks.efforts?.length === 0) {
    if (call.reasoning?.effort !== undefined || written) ignored.add('reasoning_effort: this model does not reason.');
    return { reasoning: {} };
  }
  const effort = sentEffort(call, quirks, ignored);
  const named = effort === undefined ? {} : { effort };
  if (translated) return { ...named, reasoning: { ...named, ...(isShown(call, quirks) && effort !== 'none' ? { summary: 'auto' } : {}) } };
  const { summary, ...others } = written ?? {};
  if (quirks.withoutSummary && summary !== undefined) ignored.add('reasoning.summary: this model does not show its reasoning.');
  return { ...named, reasoning: { ...named, ...others, ...(summary === undefined || quirks.withoutSummary ? {} : { summary }) } };
}

const isShown = ({ reasoning }: GenerateCall, { efforts, withoutSummary }: ReasoningQuirks): boolean =>
  reasoning !== undefined && reasoning.effort !== 'none' && !reasoning.hidden && !withoutSummary && efforts?.length !== 0;

/** Removes cache breakpoints, which only some servers of this wire know. */
export function withoutBreakpoints(body: Record<string, Json>, ignored: Set<string>): void {
  let hasBreakpoint = false;
  const bare = (value: Json): Json => {
    if (!isObject(value)) return value;
    const { cache_control, content, output, ...others } = value;
    hasBreakpoint ||= cache_control !== undefined;
    return {
      ...others,
      ...(content === undefined ? {} : { content: Array.isArray(content) ? content.map(bare) : content }),
      ...(output === undefined ? {} : { output: Array.isArray(output) ? output.map(bare) : output }),
    };
  };
  const { input, tools, cache_control: whole } = body;
  const bareInput = Array.isArray(input) ? input.map(bare) : input;
  const bareTools = Array.isArray(tools) ? tools.map(bare) : tools;
  if (!hasBreakpoint && whole === undefined) return;
  delete body['cache_control'];
  if (bareInput !== undefined) body['input'] = bareInput;
  if (bareTools !== undefined) body['tools'] = bareTools;
  ignored.add('cache_control: the provider has no cache breakpoints.');
}

/** Fields that a translated call can go without, by their paths, with what the chat interface calls them. */
export const optionalFields: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  top_logprobs: 'logprobs',
  parallel_tool_calls: 'parallel_tool_calls',
  'text.verbosity': 'verbosity',
  ...Object.fromEntries([...sisterFields].flatMap((name) => (name === 'verbosity' ? [] : [[name, name]]))),
};

/** Values that mean the same as no value. */
const neutral: Readonly<Record<string, Json>> = { temperature: 1, top_p: 1, parallel_tool_calls: true };

/** Removes from the body of a translated call what the model refuses beside the effort that is sent. */
export function removeRefused(body: Record<string, Json>, refused: RefusedFields, effort: string | undefined, ignored: Set<string>): void {
  for (const [path, kinds] of Object.entries(refused)) {
    if (!kinds.includes(thinkingOf(effort))) continue;
    const value = path === 'text.verbosity' ? verbosityOf(body) : body[path];
    if (value === undefined) continue;
    if (path === 'text.verbosity') removeVerbosity(body);
    else delete body[path];
    if (path === 'top_logprobs') removeLogprobsInclude(body);
    const name = optionalFields[path] ?? path;
    if (value !== neutral[path] && !isDefault(name, value))
      ignored.add(`${name}: this model does not accept it${kinds.includes('none') ? '' : ' while it thinks'}.`);
  }
}

const verbosityOf = ({ text }: Readonly<Record<string, Json>>): Json | undefined => (text as JsonObject | undefined)?.['verbosity'];

function removeVerbosity(body: Record<string, Json>): void {
  const { verbosity: _, ...text } = body['text'] as JsonObject;
  if (Object.keys(text).length > 0) body['text'] = text;
  else delete body['text'];
}

function removeLogprobsInclude(body: Record<string, Json>): void {
  const left = ((body['include'] ?? []) as readonly Json[]).filter((one) => one !== 'message.output_text.logprobs');
  if (left.length > 0) body['include'] = left;
  else delete body['include'];
}

/** The least value of `max_output_tokens`. https://github.com/QuantumNous/new-api/issues/2866 */
export const leastTokens = 16;

/** The token limit as the wire accepts it. @param isKnown the provider is known to accept no less */
export function tokenLimit(call: GenerateCall, isKnown: boolean, ignored: Set<string>): number | undefined {
  const { maxTokens } = call.sampling;
  if (maxTokens === undefined || maxTokens >= leastTokens || !(isKnown || isTranslated(call, dialect))) return maxTokens;
  ignored.add(`max_tokens: raised to ${leastTokens}, the least that the provider accepts.`);
  return leastTokens;
}

/** Models that are to answer in JSON refuse a conversation in which the word is missing. https://github.com/ultimatejimmy/xray.koplugin/issues/33 */
export function jsonWord(call: GenerateCall): readonly JsonObject[] {
  const text = call.output.type === 'json' && isTranslated(call, dialect) && !call.turns.some(namesJson) ? jsonInstruction(call.output) : undefined;
  return text === undefined ? [] : [{ type: 'message', role: 'system', content: [{ type: 'input_text', text }] }];
}

const namesJson = ({ parts, extra }: GenerateCall['turns'][number]): boolean =>
  own(extra, dialect)['.instructions'] !== true && parts.some((part) => part.type === 'text' && /json/i.test(part.text));
