import type { Usage } from '#core/event';
import { isEmpty, isObject, own, rest, type JsonObject } from '#core/json';
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
  const cached = isCount(read) ? read : 0;
  const { written, writtenForAnHour } = writesOf(value);
  const input = fresh + cached + (written ?? 0);
  if (!isCount(input)) return undefined;
  const thought = isObject(details) ? details['thinking_tokens'] : undefined;
  const carried = rest(value, known);
  const { server_tool_use: tools } = value;
  const searches = isObject(tools) ? tools['web_search_requests'] : undefined;
  const rate = rateOf(value);
  return {
    input,
    output,
    ...(isCount(read) ? { cached } : {}),
    ...(written === undefined ? {} : { cacheWrite: written - writtenForAnHour }),
    ...(writtenForAnHour > 0 ? { cacheWrite1h: writtenForAnHour } : {}),
    ...(isCount(thought) && thought <= output ? { thought } : {}),
    ...(isCount(searches) && searches > 0 ? { searches } : {}),
    ...(rate === 1 ? {} : { rate }),
    source: 'provider',
    ...(isEmpty(carried) ? {} : { extra: { [dialect]: carried } }),
  };
}

/**
 * What tokens cost, as a multiple of the usual price: answers in the fast mode, and those made in the US alone.
 * https://platform.claude.com/docs/en/build-with-claude/fast-mode#pricing https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing
 *
 * @param told a request or a usage: both have the same members
 */
export const rateOf = ({ speed, inference_geo: place }: Readonly<Record<string, unknown>>): number => (speed === 'fast' ? 2 : 1) * (place === 'us' ? 1.1 : 1);

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
  const written = (cacheWrite ?? 0) + cacheWrite1h;
  const ran = Math.max(searches, shown);
  return {
    input_tokens: Math.max(0, input - (cached ?? 0) - written),
    ...(cacheWrite === undefined && written === 0 ? {} : { cache_creation_input_tokens: written }),
    ...(cached === undefined ? {} : { cache_read_input_tokens: cached }),
    ...(isObject(split) ? { cache_creation: { ...split, [minutes]: cacheWrite ?? 0, [hour]: cacheWrite1h } } : {}),
    output_tokens: output,
    ...(thought === undefined ? {} : { output_tokens_details: { thinking_tokens: thought } }),
    ...(ran > 0 ? { server_tool_use: { ...(isObject(tools) ? tools : { web_fetch_requests: 0 }), web_search_requests: ran } } : {}),
    ...(ran === 0 && tools !== undefined ? { server_tool_use: tools } : {}),
    ...carried,
  };
}
