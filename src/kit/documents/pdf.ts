import { createIsomorphicCanvasFactory, getDocumentProxy, renderPageAsImage } from 'unpdf';
import { Markdown, type Converted } from './markdown.ts';
import { checkPdf, mostPages } from './pdf-check.ts';
import { bodySize, linesOf, writeLines, type PositionedText, type TextLine } from './pdf-layout.ts';
import { ConversionRefused, corrupt, empty, encrypted, tooMuch } from './refusal.ts';

type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;
type Strategy = 'fast' | 'hi_res' | 'auto';

const mostPixels = 50_000_000;
/** Dots per inch at which pages are drawn for OCR, and points per inch. */
const [ocrDpi, points] = [200, 72];
const ocrPixels = 8_000_000;
/** Characters of a page below which it is taken for a picture. */
const hardlyAny = 32;

interface PageText {
  readonly lines: readonly TextLine[];
  /** What OCR found, where that is used. */
  readonly seen?: string;
}

/** A PDF page by page; scripts in it are not run, and nothing it names is fetched. @throws ConversionRefused */
export async function convertPdf(bytes: Uint8Array, strategy: Strategy, ocrBegins: () => void): Promise<Converted> {
  await checkPdf(bytes);
  const pdf = await open(bytes);
  const title = await titleOf(pdf);
  const pages: PageText[] = [];
  try {
    for (let number = 1; number <= pdf.numPages; number++) pages.push({ lines: await textOf(pdf, number) });
  } finally {
    await pdf.loadingTask.destroy();
  }
  const unread = strategy === 'fast' ? [] : pages.flatMap((page, at) => (strategy === 'hi_res' || lettersIn(page.lines) < hardlyAny ? [at] : []));
  if (unread.length > 0) await readByOcr(bytes, pages, { unread, ocrBegins });
  return written(pages, title);
}

function written(pages: readonly PageText[], title: string | undefined): Converted {
  const markdown = new Markdown();
  const size = bodySize(pages.flatMap(({ lines }) => lines));
  for (const [at, { lines, seen }] of pages.entries())
    markdown.at({ page: at + 1 }, () => (seen === undefined ? writeLines(markdown, lines, size) : markdown.block(seen)));
  if (markdown.isEmpty) throw empty('none of its pages has text');
  return { text: markdown.toString(), places: markdown.places, ...(title ? { title } : {}) };
}

/** The parser takes the bytes it is given away: it gets a copy. */
async function open(bytes: Uint8Array, more: Parameters<typeof getDocumentProxy>[1] = {}): Promise<PdfDocument> {
  try {
    const pdf = await getDocumentProxy(new Uint8Array(bytes), {
      enableXfa: false,
      maxImageSize: mostPixels,
      disableAutoFetch: true,
      verbosity: 0,
      ...more,
    });
    if (pdf.numPages > mostPages) throw tooMuch(`it has ${pdf.numPages} pages, and at most ${mostPages} are read`);
    if (pdf.numPages === 0) throw empty('it has no pages');
    return pdf;
  } catch (error) {
    if (error instanceof ConversionRefused) throw error;
    throw error instanceof Error && error.name === 'PasswordException' ? encrypted() : corrupt('it cannot be read as a PDF', error);
  }
}

async function titleOf(pdf: PdfDocument): Promise<string | undefined> {
  try {
    const { info } = (await pdf.getMetadata()) as { readonly info: { readonly Title?: unknown } };
    const title = typeof info.Title === 'string' ? info.Title.trim().slice(0, 500) : '';
    return title === '' || /^(untitled|microsoft word)/i.test(title) ? undefined : title;
  } catch {
    return undefined;
  }
}

/** A page that cannot be read has no text: the others have. */
async function textOf(pdf: PdfDocument, number: number): Promise<readonly TextLine[]> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const lines = linesOf(items.filter((item): item is typeof item & PositionedText => 'str' in item));
    page.cleanup();
    return lines;
  } catch {
    return [];
  }
}

const lettersIn = (lines: readonly TextLine[]) =>
  lines.reduce((sum, { cells }) => sum + cells.reduce((all, { text }) => all + text.replace(/\s/g, '').length, 0), 0);

async function readByOcr(
  bytes: Uint8Array,
  pages: PageText[],
  { unread, ocrBegins }: { readonly unread: readonly number[]; readonly ocrBegins: () => void },
): Promise<void> {
  const { textInImage } = await import('./ocr.ts');
  const canvasImport = () => import('@napi-rs/canvas');
  const CanvasFactory = await createIsomorphicCanvasFactory(canvasImport);
  const pdf = await open(bytes, { CanvasFactory });
  try {
    for (const at of unread) {
      ocrBegins();
      const page = await pdf.getPage(at + 1);
      const { width, height } = page.getViewport({ scale: 1 });
      const scale = Math.min(ocrDpi / points, Math.sqrt(ocrPixels / (width * height)));
      const png = await renderPageAsImage(pdf, at + 1, { canvasImport, scale }).catch(() => undefined);
      page.cleanup();
      if (png === undefined) continue;
      const seen = await textInImage(Buffer.from(png));
      const { lines } = pages[at]!;
      if (isBetter(seen, lettersIn(lines))) pages[at] = { lines, seen };
    }
  } finally {
    await pdf.loadingTask.destroy();
  }
}

/** Letters that the page itself names are right: what OCR reads is taken where it sees clearly more of them. */
function isBetter(seen: string, known: number): boolean {
  const letters = seen.replace(/\s/g, '').length;
  return known < hardlyAny ? letters > known : letters > known * 1.2;
}
