import { isTranslated, type GenerateCall } from '#core/call';
import type { ForeignPart } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import { isObject, textOf, type Json } from '#core/json';
import type { Fitted } from '../shared/fitting.ts';
import { dialect } from './wire.ts';

/**
 * Code that the provider ran, and its output, are text for clients of other wires. https://ai.google.dev/gemini-api/docs/code-execution
 * @returns undefined for clients of this wire
 */
export const codeAsText = (call: GenerateCall): Fitted | undefined =>
  isTranslated(call, dialect) ? { call, restore: (events) => (events.some(isForeign) ? events.map(shown) : events) } : undefined;

type ForeignEvent = Extract<GenerateEvent, { type: 'part' }> & { readonly part: ForeignPart };

const isForeign = (event: GenerateEvent): event is ForeignEvent => event.type === 'part' && event.part.type === 'foreign';

function shown(event: GenerateEvent): GenerateEvent {
  const text = isForeign(event) ? textIn(event.part.value) : undefined;
  return isForeign(event) && text !== undefined ? { type: 'text', candidate: event.candidate, text, extra: {} } : event; // `extra` ends the part
}

function textIn({ executableCode: code, codeExecutionResult: result }: Readonly<Record<string, Json>>): string | undefined {
  if (isObject(code)) return fenced(textOf(code['language']).toLowerCase(), textOf(code['code']));
  return isObject(result) ? fenced('', textOf(result['output']) || textOf(result['outcome'])) : undefined;
}

const fenced = (language: string, text: string): string => `\n\`\`\`${/^[a-z]{1,20}$/.test(language) ? language : ''}\n${text.trimEnd()}\n\`\`\`\n`;
