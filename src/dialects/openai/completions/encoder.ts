import type { JsonObject } from '#core/json';
import { shownOf } from '#core/shown-media';
import type { Encoder } from '../../dialect.ts';
import { finishReasonOf } from '../chat/encode-answer.ts';
import type { ChatAnswer } from '../chat/encoder.ts';
import { encodeUsage } from '../chat/usage.ts';

/** Events → chunks. */
export function encoder({ id, created, usageWanted }: ChatAnswer): Encoder {
  let model = '';
  let last = '';
  const frame = (members: JsonObject) => `data: ${JSON.stringify({ id, object: 'text_completion', created, model, ...members })}\n\n`;
  const choice = (index: number, text: string, reason: string | null) => frame({ choices: [{ index, text, logprobs: null, finish_reason: reason }] });
  return {
    encode(event) {
      switch (event.type) {
        case 'started':
          model = event.model;
          return '';
        case 'text':
        case 'refusal':
        case 'part': {
          const text = shownOf(event);
          return text === '' ? '' : choice(event.candidate, text, null);
        }
        case 'finished':
          return choice(event.candidate, '', finishReasonOf(event.reason, event.raw));
        case 'usage':
          if (usageWanted) last = frame({ choices: [], usage: encodeUsage(event.usage) });
          return '';
        case 'thought':
        case 'tool-call':
        case 'passed':
          return ''; // this API does not have them
        default:
          return event satisfies never;
      }
    },
    end: () => `${last}data: [DONE]\n\n`,
  };
}
