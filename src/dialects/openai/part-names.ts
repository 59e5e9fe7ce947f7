import type { MediaPart, Part, TextPart } from '#core/conversation';
import { Fault } from '#core/fault';
import { foreignName } from '../shared/foreign-name.ts';

/** What a part that cannot be sent is called in a warning. */
export function nameOf(part: Exclude<Part, TextPart>): string {
  if (part.type === 'foreign') return foreignName(part);
  return part.type === 'media' ? `${part.kind}${by(part)}` : part.type;
}

const by = (part: MediaPart) => (part.fileId === undefined ? (part.url === undefined ? '' : ' by address') : ' by file id');

/** The refusal of a message of the user that cannot be sent at all. */
export function nothingLeft(parts: readonly Part[]): Fault {
  const names = [...new Set(parts.flatMap((part) => (part.type === 'text' ? [] : [nameOf(part)])))].join(', ');
  return new Fault('unsupported', `A message of turns has nothing that the provider's API supports: ${names}.`, { field: 'turns', elsewhere: true });
}
