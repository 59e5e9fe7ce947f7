import type { Fit } from '../shared/fitting.ts';
import { isTranslated } from '#core/call';
import type { GenerateEvent } from '#core/event';
import { isObject, textOf } from '#core/json';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

/** Clients of other wires read the code that a model runs, and what came of it, as text. https://ai.google.dev/gemini-api/docs/code-execution */
export const codeAsText: Fit<Quirks> = (call) =>
  isTranslated(call, dialect) ? { call, restore: (events) => (events.some(isPart) ? events.map(shown) : events) } : undefined;

const isPart = ({ type }: GenerateEvent): boolean => type === 'part';

function shown(event: GenerateEvent): GenerateEvent {
  if (event.type !== 'part' || event.part.type !== 'foreign' || event.part.dialect !== dialect) return event;
  const { executableCode: code, codeExecutionResult: result } = event.part.value;
  if (isObject(code)) return textOfBlock(event.candidate, textOf(code['language']).toLowerCase().slice(0, 20), textOf(code['code']));
  return isObject(result) ? textOfBlock(event.candidate, '', textOf(result['output'])) : event;
}

const textOfBlock = (candidate: number, language: string, text: string): GenerateEvent => ({
  type: 'text',
  candidate,
  text: `\n\`\`\`${language}\n${text}${text.endsWith('\n') ? '' : '\n'}\`\`\`\n`,
});
