import type { Usage } from '#core/event';
import { isEmpty, isObject, own, rest, textOf, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';
import { dialect } from './wire.ts';

const known = new Set(['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'output_tokens', 'output_tokens_details']);
const [minutes, hour] = ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'] as const;

/**
 * Input tokens of this wire exclude cache reads and cache writes; `Usage.input` includes both.
 * @returns undefined where the provider's counts are missing or impossible: the caller then estimates
 */
export function usageOf(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const { input_tokens: fresh, output_tokens: output, cache_read_input_tokens: read, output_tokens_details: details } = value;
  if (!isCount(fresh) || !isCount(output)) return undefined;
  const { written, writtenForAnHour } = writesOf(value);
  const aside = asideIn(value['iterations']);
  const cached = (isCount(read) ? read : 0) + aside.cached;
  const input = fresh + (isCount(read) ? read : 0) + (written ?? 0) + aside.input;
  if (!isCount(input) || !isCount(output + aside.output)) return undefined;
  const thought = isObject(details) ? details['thinking_tokens'] : undefined;
  const carried = rest(value, known);
  const { server_tool_use: tools } = value;
  const searches = isObject(tools) ? tools['web_search_requests'] : undefined;
  const rate = rateOf(value);
  return {
    input,
    output: output + aside.output,
    ...(isCount(read) || cached > 0 ? { cached } : {}),
    ...(written === undefined && aside.written === 0 ? {} : { cacheWrite: (written ?? 0) - writtenForAnHour + aside.written }),
    ...(writtenForAnHour > 0 ? { cacheWrite1h: writtenForAnHour } : {}),
    ...(aside.output > 0 ? { aside: aside.output } : {}),
    ...(isCount(thought) && thought <= output ? { thought } : {}),
    ...(isCount(searches) && searches > 0 ? { searches } : {}),
    ...(rate === 1 ? {} : { rate }),
    source: 'provider',
    ...(isEmpty(carried) ? {} : { extra: { [dialect]: carried } }),
  };
}

/**
 * What the provider sampled beside the answer and bills in addition to it: summaries of the conversation and the advice of another model. The counts of the
 * answer leave these out. https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage
 */
function asideIn(iterations: unknown) {
  const sum = { input: 0, output: 0, cached: 0, written: 0 };
  for (const one of Array.isArray(iterations) ? (iterations as readonly unknown[]).slice(0, mostIterations) : []) {
    if (!isObject(one) || !besideAnswers.has(textOf(one['type']))) continue;
    const count = (name: string): number => (isCount(one[name]) ? one[name] : 0);
    const [cached, written] = [count('cache_read_input_tokens'), count('cache_creation_input_tokens')];
    sum.input += count('input_tokens') + cached + written;
    sum.output += count('output_tokens');
    sum.cached += cached;
    sum.written += written;
  }
  return sum;
}

/** More than an answer has: each event of a stream reads them anew. */
const mostIterations = 1000;
const besideAnswers: ReadonlySet<string> = new Set(['compaction', 'advisor_message']);

/**
 * What tokens cost, as a multiple of the usual price: answers in the fast mode, and those made in the US alone.
 * https://platform.claude.com/docs/en/build-with-claude/fast-mode#pricing https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing
 * The members are the same in a request and in a usage.
 */
export const rateOf = ({ speed, inference_geo: geo }: Readonly<Record<string, unknown>>): number => (speed === 'fast' ? 2 : 1) * (geo === 'us' ? 1.1 : 1);

const tiers: Readonly<Record<string, string>> = { standard: 'default', priority: 'priority' };

/** The tier that a usage names, in the words of OpenAI's interfaces; absent where they have none. https://platform.claude.com/docs/en/api/service-tiers */
export function servedTier({ service_tier: tier }: JsonObject): { readonly service_tier?: string } {
  const name = textOf(tier);
  return Object.hasOwn(tiers, name) ? { service_tier: tiers[name]! } : {};
}

/** Tokens written into the cache, and how many of them for an hour. Where the two lifetimes do not add up to the total, the total counts. */
function writesOf({ cache_creation_input_tokens: sum, cache_creation: parts }: Readonly<Record<string, unknown>>) {
  const part = (name: string): number => (isObject(parts) && isCount(parts[name]) ? parts[name] : 0);
  const isSplit = isObject(parts) && (isCount(parts[minutes]) || isCount(parts[hour]));
  const written = isCount(sum) ? sum : isSplit ? part(minutes) + part(hour) : undefined;
  return { written, writtenForAnHour: Math.min(part(hour), written ?? 0) };
}

/** @param shown searches that the answer shows and that this wire's provider did not make */
export function encodeUsage(usage: Usage, shown = 0): JsonObject {
  const { input, output, cached, cacheWrite, cacheWrite1h = 0, thought, searches = 0, extra } = usage;
  const { cache_creation: split, server_tool_use: tools, ...carried } = own(extra, dialect);
  const aside = asideIn(carried['iterations']);
  const written = Math.max(0, (cacheWrite ?? 0) + cacheWrite1h - aside.written);
  const minutesWritten = Math.max(0, (cacheWrite ?? 0) - aside.written);
  const read = cached === undefined ? undefined : Math.max(0, cached - aside.cached);
  const ran = Math.max(searches, shown);
  return {
    input_tokens: Math.max(0, input - aside.input - (read ?? 0) - written),
    ...(cacheWrite === undefined && written === 0 ? {} : { cache_creation_input_tokens: written }),
    ...(read === undefined ? {} : { cache_read_input_tokens: read }),
    ...(isObject(split) ? { cache_creation: { ...split, [minutes]: minutesWritten, [hour]: cacheWrite1h } } : {}),
    output_tokens: Math.max(0, output - aside.output),
    ...(thought === undefined ? {} : { output_tokens_details: { thinking_tokens: thought } }),
    ...(ran > 0 ? { server_tool_use: { ...(isObject(tools) ? tools : { web_fetch_requests: 0 }), web_search_requests: ran } } : {}),
    ...(ran === 0 && tools !== undefined ? { server_tool_use: tools } : {}),
    ...carried,
  };
}
