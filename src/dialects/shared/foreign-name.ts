import type { ForeignPart } from '#core/conversation';
import { isObject, textOf } from '#core/json';

/** What content of another wire is called in a warning or a refusal: its type, or the member that holds it, as `executableCode` of Gemini, else its first member. */
export const foreignName = ({ value }: Pick<ForeignPart, 'value'>): string =>
  (textOf(value['type']) || Object.keys(value).find((name) => isObject(value[name])) || Object.keys(value)[0] || 'content').slice(0, longestName);

const longestName = 100;
