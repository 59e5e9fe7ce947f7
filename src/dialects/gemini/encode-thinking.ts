import type { GenerateCall } from '#core/call';
import { noteOn } from '#core/capabilities';
import { isEmpty, own, type JsonObject } from '#core/json';
import { supports } from './capabilities.ts';
import type { Quirks } from './quirks.ts';
import { mostOf, thinkingConfigOf } from './thinking-config.ts';
import { dialect } from './wire.ts';

/**
 * `thinkingConfig` as the client sent it if it spoke this wire, else from its effort or budget.
 * @param call with the output token limit that is sent
 */
export function encodeThinking({ reasoning, extra, sampling: { maxTokens } }: GenerateCall, quirks: Quirks, ignored: Set<string>): JsonObject {
  const original = own(extra, dialect)['.thinkingConfig'];
  if (original !== undefined) return { thinkingConfig: original };
  if (!reasoning) return {};
  if (quirks.withoutThinking) {
    if (reasoning.effort !== undefined) ignored.add(noteOn('reasoning_effort', supports(quirks)));
    return {};
  }
  const config = thinkingConfigOf(reasoning, quirks, maxTokens);
  const { effort, budget } = reasoning;
  const { thinkingBudget: tokens, thinkingLevel: level } = config;
  const isLeast = effort === 'none' ? tokens !== 0 : typeof tokens === 'number' && tokens > mostOf(maxTokens);
  if (isLeast) ignored.add('reasoning_effort: this model always thinks, so it is asked for its lowest effort.');
  else if (tokens === 0 && effort !== 'none' && budget !== 0)
    ignored.add('reasoning_effort: a quarter of the limit for all tokens is left to the answer, and the rest is too little to think.');
  else if ((effort ?? budget) !== undefined && tokens === undefined && level === undefined)
    ignored.add(`reasoning_effort: this model does not accept ${effort ?? budget}.`);
  return isEmpty(config) ? {} : { thinkingConfig: config };
}
