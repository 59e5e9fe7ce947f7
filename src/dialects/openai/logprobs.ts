import type { TokenLogprob } from '#core/event';
import { isObject, type JsonObject } from '#core/json';

/** Log probabilities of OpenAI's wires. */

/** @returns undefined where there are none */
export function tokenLogprobsOf(tokens: unknown): readonly TokenLogprob[] | undefined {
  if (!Array.isArray(tokens) || tokens.length === 0 || !tokens.every(isTokenLogprob)) return undefined;
  return tokens.map((one) => ({
    ...tokenOf(one),
    ...(Array.isArray(one['top_logprobs']) ? { top: one['top_logprobs'].filter(isTokenLogprob).map(tokenOf) } : {}),
  }));
}

type WireLogprob = Readonly<Record<string, unknown>> & { readonly token: string; readonly logprob: number };

const isTokenLogprob = (value: unknown): value is WireLogprob => isObject(value) && typeof value['token'] === 'string' && typeof value['logprob'] === 'number';

function tokenOf({ token, logprob, bytes }: WireLogprob): Omit<TokenLogprob, 'top'> {
  return { token, logprob, ...(bytes === null || Array.isArray(bytes) ? { bytes: bytes as readonly number[] | null } : {}) };
}

/** @param noBytes the value for unknown bytes */
export function encodeLogprobs(tokens: readonly TokenLogprob[], noBytes: readonly number[] | null): JsonObject[] {
  const encode = ({ token, logprob, bytes }: Omit<TokenLogprob, 'top'>) => ({ token, logprob, bytes: bytes ?? noBytes });
  return tokens.map(({ top = [], ...token }) => ({ ...encode(token), top_logprobs: top.map(encode) }));
}
