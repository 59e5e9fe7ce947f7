import { isRecord } from './definitions.ts';

/** What a tool answered, as text for a model. */
export interface McpResult {
  readonly text: string;
  readonly isError: boolean;
}

/** Most bytes of a result's text. */
export const mostResultBytes = 1_048_576;

/** The texts of a result; pictures, sounds and files are named by their types. @throws Error where it is too large */
export function resultText({ content, isError }: Readonly<Record<string, unknown>>): McpResult {
  const text = Array.isArray(content) ? textOfContent(content as readonly unknown[]) : '';
  if (Buffer.byteLength(text) > mostResultBytes) throw new Error('The result is too large.');
  return { text, isError: isError === true };
}

/** The blocks of a result as one text: half of a surrogate pair would be one that clients cannot parse. */
export const textOfContent = (blocks: readonly unknown[]): string =>
  blocks
    .map(blockText)
    .filter((text) => text !== '')
    .join('\n')
    .toWellFormed();

function blockText(block: unknown): string {
  if (!isRecord(block)) return '';
  const { type, text, mimeType, uri, name, resource } = block;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'resource' && isRecord(resource)) return typeof resource['text'] === 'string' ? resource['text'] : `[${wordOf(resource['uri'])}]`;
  if (type === 'resource_link') return `[${wordOf(name)}: ${wordOf(uri)}]`;
  return `[${wordOf(type)}: ${wordOf(mimeType)}]`;
}

const wordOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, 2048) : '');
