import type { GenerateEvent } from '#core/event';
import { isEmpty, isObject, rest, textOf } from '#core/json';
import type { Served } from '../usage.ts';
import { usageOf } from './usage.ts';
import { carriedAs } from './wire.ts';

/** What the object of a response says besides its items, and the whole of one that is nothing but a text. */

/** Any JSON object from an upstream: no member is guaranteed. */
type Loose = Readonly<Record<string, unknown>>;

/** @param model its upstream name, for answers that do not report one */
export const servedBy = (response: Loose, model: string): Served => ({ tier: textOf(response['service_tier']), model: textOf(response['model']) || model });

export function startedOf(response: unknown, model: string, ignored: readonly string[]): GenerateEvent {
  const name = isObject(response) ? textOf(response['model']) : '';
  const tier = isObject(response) ? textOf(response['service_tier']) : '';
  const extra = tier === '' || tier === 'auto' ? {} : { extra: { 'openai-chat': { service_tier: tier } } }; // chat completions begin with it
  return { type: 'started', model: name || model, ignored, ...extra };
}

interface Read {
  /** Calls of tools among its items, and searches. */
  readonly calls: number;
  readonly searches: number;
  /** The upstream name of the model. */
  readonly model: string;
}

/** How the response ended, and its usage. */
export function endOf(response: Loose, { calls, searches, model }: Read): readonly GenerateEvent[] {
  const { status, usage, incomplete_details: details } = response;
  const why = isObject(details) ? textOf(details['reason']) : '';
  const reason = why === 'content_filter' ? 'refused' : status === 'incomplete' ? 'length' : calls > 0 ? 'tool' : 'stop';
  const tier = textOf(response['service_tier']);
  const counted = usageOf(usage, servedBy(response, model));
  const others = { ...rest(response, responseMembers), ...(tier === '' ? {} : { service_tier: tier }) };
  const finished: GenerateEvent = { type: 'finished', candidate: 0, reason, raw: why || textOf(status), ...(isEmpty(others) ? {} : carriedAs(others)) };
  return counted ? [finished, { type: 'usage', usage: searches > 0 ? { ...counted, searches } : counted }] : [finished];
}

/** The members of a response that the gateway writes itself, and who pays the provider. All others, such as `moderation`, are carried. */
const responseMembers = new Set(
  (
    'id object created_at completed_at status background error incomplete_details instructions max_output_tokens max_tool_calls model output output_text ' +
    'parallel_tool_calls previous_response_id conversation prompt_cache_key reasoning safety_identifier service_tier store temperature text tool_choice ' +
    'tools top_logprobs top_p presence_penalty frequency_penalty truncation usage user metadata billing'
  ).split(' '),
);

export const messageMembers = new Set(['type', 'id', 'role', 'content', 'status']);

/**
 * A whole response whose output is one message with one text, as most are → the same events that a reader of items makes of it.
 * @returns undefined for any other
 */
export function textAnswer(response: unknown, model: string, ignored: readonly string[]): readonly GenerateEvent[] | undefined {
  if (!isObject(response) || response['error'] || response['status'] !== 'completed') return undefined;
  const item = onlyOne(response['output']);
  if (item?.['type'] !== 'message' || !isEmpty(rest(item, messageMembers))) return undefined;
  const part = onlyOne(item['content']);
  if (part?.['type'] !== 'output_text' || !isNone(part['annotations']) || !isNone(part['logprobs'])) return undefined;
  const text = textOf(part['text']);
  if (text === '') return undefined;
  return [startedOf(response, model, ignored), { type: 'text', candidate: 0, text }, ...endOf(response, { calls: 0, searches: 0, model })];
}

function onlyOne(list: unknown): Loose | undefined {
  if (!Array.isArray(list) || list.length !== 1) return undefined;
  const [one] = list as readonly unknown[];
  return isObject(one) ? one : undefined;
}

const isNone = (list: unknown): boolean => list === undefined || list === null || (Array.isArray(list) && list.length === 0);
