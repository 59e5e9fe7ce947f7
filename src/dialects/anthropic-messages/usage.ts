import type { Usage } from '#model/event';
import { isEmpty, isObject, own, rest, type JsonObject } from '#model/json';
import { isCount } from '../reading.ts';
import { dialect } from './wire.ts';

const known = new Set(['input_tokens', 'cache_read_input_tokens', 'output_tokens', 'output_tokens_details']);

/** Input tokens of this wire leave out what was cached; ours include it. @returns undefined where the provider's numbers are missing or cannot be: somebody else estimates then */
export function usageOf(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const {
    input_tokens: fresh,
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: created,
    output_tokens_details: details,
  } = value;
  if (!isCount(fresh) || !isCount(output)) return undefined;
  const cached = isCount(read) ? read : 0;
  const input = fresh + cached + (isCount(created) ? created : 0);
  if (!isCount(input)) return undefined;
  const thought = isObject(details) ? details['thinking_tokens'] : undefined;
  const carried = rest(value, known);
  return {
    input,
    output,
    ...(isCount(read) ? { cached } : {}),
    ...(isCount(thought) && thought <= output ? { thought } : {}),
    source: 'provider',
    ...(isEmpty(carried) ? {} : { extra: { [dialect]: carried } }),
  };
}

export function encodeUsage({ input, output, cached, thought, extra }: Usage): JsonObject {
  const carried = own(extra, dialect);
  const created = carried['cache_creation_input_tokens'];
  return {
    input_tokens: Math.max(0, input - (cached ?? 0) - (isCount(created) ? created : 0)),
    ...(cached === undefined ? {} : { cache_read_input_tokens: cached }),
    output_tokens: output,
    ...(thought === undefined ? {} : { output_tokens_details: { thinking_tokens: thought } }),
    ...carried,
  };
}
