import type { Usage } from '#core/event';
import { isEmpty, isObject, own, rest, type JsonObject } from '#core/json';
import { askedRate } from '../shared/asked-rate.ts';
import { audioIn } from '../shared/audio-tokens.ts';
import { isCount } from '../shared/read-fields.ts';
import { dialect } from './wire.ts';

const known = new Set(['promptTokenCount', 'cachedContentTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'totalTokenCount']);

/**
 * Output tokens of this wire exclude thoughts, and prompt tokens exclude those of provider tools; `Usage` includes both. A total above the sum is believed:
 * some models do not report their thoughts separately.
 * @returns undefined where the provider's counts are missing or impossible: the caller then estimates
 */
export function usageOf(value: unknown): Usage | undefined {
  if (!isObject(value) || !isCount(value['promptTokenCount'])) return undefined;
  const count = (name: string): number => (isCount(value[name]) ? value[name] : 0);
  const thought = count('thoughtsTokenCount');
  const input = count('promptTokenCount') + count('toolUsePromptTokenCount');
  const output = Math.max(count('candidatesTokenCount') + thought, count('totalTokenCount') - input);
  if (!isCount(input) || !isCount(output)) return undefined;
  const cached = value['cachedContentTokenCount'];
  const rate = [value['serviceTier'], value['trafficType']].map(rateOf).find((one) => one !== 1);
  const carried = rest(value, known);
  return {
    input,
    output,
    ...(isCount(cached) && cached <= input ? { cached } : {}),
    ...(thought > 0 ? { thought } : {}),
    ...audioIn(soundIn(value['promptTokensDetails']), soundIn(value['candidatesTokensDetails']), { input, output }),
    ...(rate === undefined ? {} : { rate }),
    source: 'provider',
    ...(isEmpty(carried) ? {} : { extra: { [dialect]: carried } }),
  };
}

/** The tokens of sound among those of each kind of content. */
function soundIn(details: unknown): unknown {
  if (!Array.isArray(details)) return undefined;
  const sound = (details as readonly unknown[]).find((one) => isObject(one) && one['modality'] === 'AUDIO');
  return isObject(sound) ? sound['tokenCount'] : undefined;
}

/** What service tiers cost, as multiples of the usual price: the list of most models has about 1.8 for `priority`. https://ai.google.dev/gemini-api/docs/pricing */
const tierRates: ReadonlyMap<string, number> = new Map([
  ['flex', 0.5],
  ['priority', 1.8],
]);

/** @param tier of a request or a usage: `priority`, `SERVICE_TIER_PRIORITY`; on the cloud platform `ON_DEMAND_PRIORITY` */
const rateOf = (tier: unknown): number => tierRates.get(nameOf(tier)) ?? 1;

const nameOf = (tier: unknown): string => (typeof tier === 'string' ? tier.toLowerCase().slice(tier.lastIndexOf('_') + 1) : '');

/** `priority` costs 75 to 100 % more than usual: the most of it is set aside. https://ai.google.dev/gemini-api/docs/optimization */
export const askedTier = (tier: unknown) => askedRate(() => (nameOf(tier) === 'priority' ? 2 : rateOf(tier)));

/** Tokens by the kind of their content, where some are of sound. @param all a count with them */
function detailsOf(all: number, audio: number | undefined): readonly JsonObject[] | undefined {
  if (audio === undefined) return undefined;
  const text = all > audio ? [{ modality: 'TEXT', tokenCount: all - audio }] : [];
  return [...text, { modality: 'AUDIO', tokenCount: audio }];
}

export function encodeUsage({ input, output, cached, thought = 0, audioInput, audioOutput, extra }: Usage): JsonObject {
  const carried = own(extra, dialect);
  const tools = carried['toolUsePromptTokenCount'];
  const prompt = Math.max(0, input - (isCount(tools) ? tools : 0));
  const candidates = Math.max(0, output - thought);
  const [ofPrompt, ofCandidates] = [detailsOf(prompt, audioInput), detailsOf(candidates, audioOutput)];
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    totalTokenCount: input + output,
    ...(thought > 0 ? { thoughtsTokenCount: thought } : {}),
    ...(cached === undefined ? {} : { cachedContentTokenCount: cached }),
    ...(ofPrompt ? { promptTokensDetails: ofPrompt } : {}),
    ...(ofCandidates ? { candidatesTokensDetails: ofCandidates } : {}),
    ...carried,
  };
}
