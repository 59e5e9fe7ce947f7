import type { MediaPart } from '#core/conversation';
import { typeIn } from '../shared/media-type.ts';

/** Names of files by their MIME types, and the other way round: both wires refuse base64 without a name. https://github.com/openai/openai-agents-python/issues/1513 */
const extensions: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'application/json': 'json',
  'application/xml': 'xml',
  'application/rtf': 'rtf',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'text/plain': 'txt',
  'text/markdown': 'md',
  'text/csv': 'csv',
  'text/html': 'html',
};

/** @param mediaType of a file without a name */
export const fileNameFor = (mediaType = 'application/pdf'): string => `document.${extensions[mediaType.split(';', 1)[0]!.trim().toLowerCase()] ?? 'bin'}`;

type Content = Pick<MediaPart, 'base64' | 'mediaType' | 'url'>;

/** The content of a file, with the MIME type that its bytes or its name tell where the client gave base64 and no type: no other wire takes it without one. */
export function typed(content: Content, name: string | undefined): Content {
  const { base64, mediaType } = content;
  if (base64 === undefined || mediaType !== undefined) return content;
  const type = typeIn({ kind: 'file', base64 }) ?? typeOfName(name);
  return type === undefined ? content : { ...content, mediaType: type };
}

function typeOfName(name = ''): string | undefined {
  const extension = /\.(\w{2,5})$/.exec(name)?.[1]?.toLowerCase();
  return Object.keys(extensions).find((type) => extensions[type] === extension);
}
