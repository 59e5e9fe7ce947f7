import type { Converted } from './markdown.ts';
import { empty } from './refusal.ts';
import { sniff, textIn } from './sniff.ts';

export interface ConversionAsked {
  readonly filename: string;
  /** Which pages and images are read by OCR: none, all, or those with hardly any text. */
  readonly strategy: 'fast' | 'hi_res' | 'auto';
  /** Rows of CSV as records, `column: value`. */
  readonly records: boolean;
  /** The way to an attachment of the mail: the second attachment of the first one is `[0, 1]`. */
  readonly inside: readonly number[];
}

export interface TypedDocument extends Converted {
  /** Media type. */
  readonly type: string;
}

/** Makes Markdown of a document. Each library is loaded when it is needed. @param ocrBegins called before each page that is read by OCR @throws ConversionRefused */
export async function convert(content: Uint8Array, asked: ConversionAsked, ocrBegins: () => void): Promise<TypedDocument> {
  const { bytes, filename } = await opened(content, asked);
  const found = await sniff(bytes, filename);
  const { type } = found;
  switch (found.reader) {
    case 'pdf': {
      const { convertPdf } = await import('./pdf.ts');
      return { type, ...(await convertPdf(bytes, asked.strategy, ocrBegins)) };
    }
    case 'office': {
      const { convertOffice } = await import('./office.ts');
      return { type, ...filled(await convertOffice(bytes, found.name)) };
    }
    case 'html': {
      const { convertHtml } = await import('./html.ts');
      return { type, ...filled(convertHtml(found.text ?? textIn(bytes) ?? '')) };
    }
    case 'mail': {
      const { convertMail } = await import('./mail.ts');
      return { type, ...(await convertMail(bytes)) };
    }
    case 'image': {
      if (asked.strategy === 'fast') throw empty('an image is read by OCR alone');
      const { convertImage } = await import('./image.ts');
      return { type, ...(await convertImage(bytes, found.name, ocrBegins)) };
    }
    case 'csv':
    case 'json':
    case 'markdown':
    case 'code':
    case 'text': {
      const { convertText } = await import('./text.ts');
      return { type, ...filled(convertText(found, asked)) };
    }
    default:
      return found.reader satisfies never;
  }
}

/** The document itself, or what is attached to it. */
async function opened(content: Uint8Array, { filename, inside }: ConversionAsked): Promise<{ readonly bytes: Uint8Array; readonly filename: string }> {
  let found = { bytes: content, filename };
  if (inside.length === 0) return found;
  const { attachmentOf } = await import('./mail.ts');
  for (const index of inside) found = await attachmentOf(found.bytes, index);
  return found;
}

function filled(converted: Converted): Converted {
  if (converted.text.trim() === '') throw empty();
  return converted;
}
