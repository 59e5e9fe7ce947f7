import type { TokenLogprob } from '#core/event';

/** Plausible, deterministic log probabilities: the token itself is the most likely, and each alternative has half of the remaining probability. */
export function logprobsOf(tokens: readonly string[], from: number, alternatives: number): TokenLogprob[] {
  return tokens.map((token, at) => {
    const chance = 0.6 + (hashOf(`${from + at} ${token}`) % 3999) / 10_000;
    const others = [token, ...common.filter((one) => one !== token)].slice(0, Math.max(0, Math.min(20, alternatives)));
    return { ...scored(token, chance), top: others.map((one, rank) => scored(one, rank === 0 ? chance : (1 - chance) / 2 ** rank)) };
  });
}

const common = [
  ' the',
  ' a',
  ',',
  '.',
  ' and',
  ' of',
  ' to',
  ' in',
  ' is',
  ' it',
  ' that',
  ' for',
  ' you',
  ' with',
  ' on',
  ' as',
  ' I',
  ' not',
  ' be',
  ' at',
  '\n',
];

const scored = (token: string, chance: number) => ({ token, logprob: Math.log(chance), bytes: [...Buffer.from(token)] });

/** FNV-1a, 31 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 1;
}
