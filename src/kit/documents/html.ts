import { NodeHtmlMarkdown, type TranslatorConfigFactory } from 'node-html-markdown';
import { withAllTags } from './html-tags.ts';
import { Markdown, type Converted } from './markdown.ts';

/** A web page. Its addresses are words: nothing is fetched. @throws ConversionRefused `too-much` */
export function convertHtml(html: string): Converted {
  const markdown = new Markdown();
  const title = titleIn(html);
  markdown.block(htmlToMarkdown(html));
  return { text: markdown.toString(), places: [], ...(title ? { title } : {}) };
}

/** @throws ConversionRefused `too-much` for one nested so deeply that no reader follows it */
export function htmlToMarkdown(html: string): string {
  return translator.translate(withAllTags(html.replace(/^\s*<\?xml[^>]*>/i, ''))).trim();
}

const ignored = ['script', 'style', 'noscript', 'template', 'svg', 'head', 'iframe', 'object', 'nav', 'title'];

const translator = new NodeHtmlMarkdown({
  ignore: ignored,
  blockElements: ['legend', 'option', 'summary'],
  bulletMarker: '-',
  globalEscape: [/(?!)/g, ''],
  lineStartEscape: [/(?!)/g, ''],
  maxConsecutiveNewlines: 2,
});

/** What stands on lines of its own: in a cell, whose text is one line, the words of two of them would run together. */
const lines =
  'address,article,aside,blockquote,dd,details,div,dl,dt,fieldset,figcaption,figure,footer,form,h1,h2,h3,h4,h5,h6,header,hr,li,main,ol,option,p,pre,section,summary,table,td,th,tr,ul';
translator.tableCellTranslators.set(lines, { surroundingNewlines: 1 });
translator.tableCellTranslators.set('br', { content: '\n', recurse: false });
translator.tableCellTranslators.set(ignored.join(','), { ignore: true, recurse: false });

const cell: TranslatorConfigFactory = ({ visitor }) => ({
  surroundingNewlines: false,
  childTranslators: visitor.instance.tableCellTranslators,
  prefix: ' ',
  postfix: ' |',
  postprocess: ({ content }) => oneLine(content).replaceAll('|', String.raw`\|`),
});
for (const translators of [translator.tableTranslators, translator.tableRowTranslators]) translators.set('th,td', cell);

/** An element, whose type the library takes from a package that is not ours. */
interface Attributed {
  readonly node: { getAttribute(name: string): string | undefined };
}

function numberIn({ node }: Attributed, name: string): number | undefined {
  const given = node.getAttribute(name) ?? '';
  return /^\d{1,9}$/.test(given) ? Number(given) : undefined;
}

/** Lists that do not begin with 1, or go on with another number. */
translator.translators.set('ol', (context) => {
  const list = context.visitor.nodeMetadata.get(context.node);
  if (list) list.listItemNumber = (numberIn(context, 'start') ?? 1) - 1;
  return { surroundingNewlines: 1 };
});
const item = translator.translators.get('li') as TranslatorConfigFactory;
translator.translators.set('li', (context) => {
  const number = context.listKind === 'OL' ? numberIn(context, 'value') : undefined;
  const list = context.visitor.nodeMetadata.get(context.node);
  if (number === undefined || !list) return item(context);
  list.listItemNumber = number;
  return item({ ...context, listItemNumber: number });
});

const oneLine = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');

function titleIn(html: string): string | undefined {
  const head = html.slice(0, 65_536);
  const from = head.search(/<title[\s>]/i);
  if (from < 0) return undefined;
  const [, text = ''] = /^<title[^>]*>([^<]{0,500})/i.exec(head.slice(from)) ?? [];
  return NodeHtmlMarkdown.translate(text.trim()).trim() || undefined;
}
