import type { TokenLogprob } from '#core/event';
import { isObject, textOf, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';

type Plain = Omit<TokenLogprob, 'top' | 'bytes'>;

/** Log probabilities of this wire: the chosen tokens, each with its top alternatives. */
export function logprobsOf(value: unknown): readonly TokenLogprob[] | undefined {
  if (!isObject(value) || !Array.isArray(value['chosenCandidates'])) return undefined;
  const tops: readonly unknown[] = Array.isArray(value['topCandidates']) ? value['topCandidates'] : [];
  return value['chosenCandidates'].flatMap((one: unknown, at): readonly TokenLogprob[] => {
    const chosen = plain(one);
    if (!chosen) return [];
    const beside = tops[at];
    const top = isObject(beside) && Array.isArray(beside['candidates']) ? beside['candidates'].flatMap((other: unknown) => plain(other) ?? []) : undefined;
    return [{ ...chosen, ...(top ? { top } : {}) }];
  });
}

function plain(value: unknown): Plain | undefined {
  if (!isObject(value)) return undefined;
  const { logProbability, tokenId: id } = value;
  if (typeof logProbability !== 'number' || !Number.isFinite(logProbability)) return undefined;
  return { token: textOf(value['token']), logprob: logProbability, ...(isCount(id) ? { id } : {}) };
}

export function encodeLogprobs(logprobs: readonly TokenLogprob[]): JsonObject {
  const said = ({ token, logprob, id }: Plain) => ({ token, ...(id === undefined ? {} : { tokenId: id }), logProbability: logprob });
  return {
    topCandidates: logprobs.map((one) => ({ candidates: (one.top ?? [one]).map(said) })),
    chosenCandidates: logprobs.map(said),
  };
}
