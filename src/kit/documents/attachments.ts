import { mostTextBytes, type Place } from './markdown.ts';
import { ConversionRefused } from './refusal.ts';
import type { ConversionAsked, TypedDocument } from './convert.ts';

/** How deep attachments of attachments are read. */
const deepest = 3;
/** How often something is converted for one document: the document itself, and what is attached at all levels. */
const mostConversions = 100;

interface Bounds {
  /** How many attachments are still read. */
  left: number;
  /** Aborted when the document as a whole is given up. */
  readonly signal: AbortSignal;
}

/**
 * A document with what is attached to it, if it is a mail: each attachment is converted by itself, and stands behind the mail's text under its name. One that
 * cannot be read is named with the reason; those beyond the hundredth conversion are counted.
 * @param convert converts the document, or the attachment to which `inside` leads
 */
export function joinedAttachments(
  asked: ConversionAsked,
  convert: (asked: ConversionAsked) => Promise<TypedDocument>,
  signal: AbortSignal,
): Promise<TypedDocument> {
  return joined(asked, convert, { left: mostConversions - 1, signal });
}

async function joined(asked: ConversionAsked, convert: (asked: ConversionAsked) => Promise<TypedDocument>, bounds: Bounds): Promise<TypedDocument> {
  const document = await convert(asked);
  const { attachments = [], ...mail } = document;
  if (mail.type !== 'message/rfc822') return document;
  let text = mail.text;
  const places: Place[] = [...mail.places];
  const level = asked.inside.length + 2;
  for (const [at, name] of attachments.entries()) {
    if (bounds.left-- <= 0) {
      text += `\n\n(Not read: ${attachments.length - at} more attachments. At most ${mostConversions - 1} of a file are read.)`;
      break;
    }
    const heading = `${'#'.repeat(Math.min(level, 6))} ${name.trim().replace(/\s+/g, ' ').slice(0, 300)}`;
    const read = await attached({ ...asked, inside: [...asked.inside, at] }, convert, bounds);
    const shift = text.length + heading.length + 4;
    text += `\n\n${heading}\n\n${read.text}`;
    for (const place of read.places) places.push({ ...place, start: place.start + shift, end: place.end + shift });
    if (Buffer.byteLength(text) > mostTextBytes) throw new ConversionRefused('too-long', `The text of the file is longer than ${mostTextBytes} bytes.`);
  }
  if (text.trim() === '') throw new ConversionRefused('empty', 'The file is empty: there is no text in it.');
  return { ...mail, text, places };
}

async function attached(
  asked: ConversionAsked,
  convert: (asked: ConversionAsked) => Promise<TypedDocument>,
  bounds: Bounds,
): Promise<Pick<TypedDocument, 'text' | 'places'>> {
  if (asked.inside.length > deepest) return { text: `(Not read: it is attached more than ${deepest} deep.)`, places: [] };
  try {
    return await joined(asked, convert, bounds);
  } catch (error) {
    if (bounds.signal.aborted || !(error instanceof ConversionRefused) || error.reason === 'too-long' || error.reason === 'busy') throw error;
    return { text: `(Not read: ${error.message})`, places: [] };
  }
}
