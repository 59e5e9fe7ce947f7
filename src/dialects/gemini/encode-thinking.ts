import type { GenerateCall } from '#core/call';
import { noteOn } from '#core/capabilities';
import { isEmpty, own, type JsonObject } from '#core/json';
import { supports } from './capabilities.ts';
import type { Quirks } from './quirks.ts';
import { thinkingConfigOf } from './thinking-config.ts';
import { dialect } from './wire.ts';

/** `thinkingConfig` as the client sent it if it spoke this wire, else from its effort or budget. */
export function encodeThinking({ reasoning, extra }: GenerateCall, quirks: Quirks, ignored: Set<string>): JsonObject {
  const original = own(extra, dialect)['.thinkingConfig'];
  if (original !== undefined) return { thinkingConfig: original };
  if (!reasoning) return {};
  if (quirks.withoutThinking) {
    if (reasoning.effort !== undefined) ignored.add(noteOn('reasoning_effort', supports(quirks)));
    return {};
  }
  const config = thinkingConfigOf(reasoning, quirks);
  const { effort, budget } = reasoning;
  if (effort === 'none' && config['thinkingBudget'] !== 0) ignored.add('reasoning_effort: this model always thinks, so it is asked for its lowest effort.');
  else if ((effort ?? budget) !== undefined && config['thinkingBudget'] === undefined && config['thinkingLevel'] === undefined)
    ignored.add(`reasoning_effort: this model does not accept ${effort ?? budget}.`);
  return isEmpty(config) ? {} : { thinkingConfig: config };
}
