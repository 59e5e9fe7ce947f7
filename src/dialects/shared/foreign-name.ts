import type { ForeignPart } from '#core/conversation';
import { isObject, textOf } from '#core/json';

/** What content of another wire is called in a warning or a refusal: its type, or the member that holds it, as `executableCode` of Gemini: an object, as a rule. */
export function foreignName({ value }: Pick<ForeignPart, 'value'>): string {
  const names = Object.keys(value);
  return (textOf(value['type']) || names.find((name) => isObject(value[name])) || names[0] || 'content').slice(0, longestName);
}

const longestName = 100;
