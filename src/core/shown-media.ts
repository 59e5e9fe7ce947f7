import type { MediaPart, Part } from './conversation.ts';
import type { GenerateEvent } from './event.ts';

/* Images and sounds in answers of interfaces that have text alone. */

/** An image as a note, a sound as its words. */
export const mediaText = ({ kind, mediaType = 'image', url, base64 = '', transcript = '' }: MediaPart): string =>
  kind === 'image'
    ? `[${mediaType}${url === undefined ? `, ${Math.floor(base64.length * 0.75)} bytes: answers of this interface hold no images` : `: ${url}`}]`
    : transcript;

/** What a part adds to an answer that is one text: a note of an image has a line of its own. */
function textOfPart(part: Part): string {
  if (part.type === 'text' || part.type === 'refusal') return part.text;
  if (part.type !== 'media') return '';
  return part.kind === 'image' ? `\n${mediaText(part)}\n` : mediaText(part);
}

/** An answer that is one text. */
export const shownIn = (parts: readonly Part[]): string => parts.map(textOfPart).join('');

/** What an event adds to it. */
export function shownOf(event: GenerateEvent): string {
  if (event.type === 'text' || event.type === 'refusal') return event.text;
  return event.type === 'part' && !event.progress ? textOfPart(event.part) : '';
}

/** Warnings about sounds in an answer of such an interface, as `field: reason`. */
export function soundsIn(parts: readonly Part[]): readonly string[] {
  const sounds = parts.filter((part) => part.type === 'media' && part.kind === 'audio');
  if (sounds.length === 0) return [];
  const hasWords = sounds.some((part) => part.type === 'media' && part.transcript !== undefined);
  return [`audio: answers of this interface hold no sounds, so ${hasWords ? 'the words of the sound are sent as text' : 'the sound is left out'}`];
}
