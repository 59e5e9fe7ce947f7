import { isUtf8 } from 'node:buffer';
import { trimEnd } from '#kit/text/trim-end';
import type { MediaPart } from '#core/conversation';
import { isTextType } from '#core/text-types';
import { Fault } from '#core/fault';
import { percentDecoded } from '#kit/text/percent-decoded';

/** Most characters of files that are checked in one request. */
export const mostCharacters = 8_388_608;

/**
 * The media part with the text of its file checked, if it is a text file in base64 or in a `data:` URL: by its media type or, without one, because it is valid
 * UTF-8. Any other part is returned unchanged.
 * @throws Fault `invalid` for a text file that cannot be read, `too-large`
 */
export function withFileText<Kind extends MediaPart>(part: Kind, each: (text: string) => string): Kind {
  const { base64, url, mediaType } = part;
  const held = base64 === undefined ? inUrl(url) : { type: mediaType ?? '', base64: true, content: base64 };
  if (!held) return part;
  const [type = '', ...parameters] = held.type
    .toLowerCase()
    .split(';', 10)
    .map((one) => one.trim());
  const isText = isTextType(type) || (type === '' && base64 === undefined); // a URL without a type is plain text (RFC 2397)
  if (!isText && !((type === '' || type === 'application/octet-stream') && part.kind === 'file')) return part;
  const text = parameters.every(isUtf8Parameter) ? textOf(held) : undefined;
  if (text === undefined && isText)
    throw new Fault('invalid', 'turns must contain only UTF-8 text files, as base64 or as a data: URL: a check applies to this request and has to read them.', {
      field: 'turns',
    });
  const left = text === undefined ? text : each(text);
  if (left === undefined || left === text) return part;
  const written = Buffer.from(left).toString('base64');
  return base64 === undefined ? { ...part, url: `data:${type || 'text/plain'};base64,${written}` } : { ...part, base64: written };
}

const isUtf8Parameter = (parameter: string) => !parameter.startsWith('charset=') || /^charset="?(?:utf-?8|us-ascii|ascii)"?$/.test(parameter);

interface Held {
  readonly type: string;
  readonly base64: boolean;
  readonly content: string;
}

/** The content of a `data:` URL (RFC 2397); undefined for other URLs. */
function inUrl(url: string | undefined): Held | undefined {
  if (url === undefined || !/^\s{0,9}data:/i.test(url.slice(0, 15))) return undefined;
  const comma = url.indexOf(',');
  const start = url.indexOf(':') + 1;
  const head = url.slice(start, comma < 0 ? undefined : Math.min(comma, 1000));
  const base64 = /;\s{0,9}base64\s{0,9}$/i.test(head);
  return { type: base64 ? head.slice(0, head.lastIndexOf(';')) : head, base64, content: comma < 0 ? '' : url.slice(comma + 1) };
}

function textOf({ base64, content }: Held): string | undefined {
  if (content.length > mostCharacters * 2) throw tooLarge();
  if (!base64) return percentDecoded(content);
  const bytes = Buffer.from(content, 'base64');
  const isWhole = bytes.length >= Math.floor((trimEnd(content, '=').length * 3) / 4); // a decoder stops at an invalid character, and another decoder might not
  return isWhole && isUtf8(bytes) ? bytes.toString() : undefined;
}

export const tooLarge = () => new Fault('too-large', `A check applies to this request, and the text to check is longer than ${mostCharacters} characters.`);
