import { NodeHtmlMarkdown, type TranslatorConfigFactory } from 'node-html-markdown';
import { Markdown, type Converted } from './markdown.ts';
import { tooMuch } from './refusal.ts';

const deepest = 256;
const mostTags = 500_000;

/** A web page. Its addresses are words: nothing is fetched. @throws ConversionRefused `too-much` */
export function convertHtml(html: string): Converted {
  const markdown = new Markdown();
  const title = titleIn(html);
  markdown.block(htmlToMarkdown(html));
  return { text: markdown.toString(), places: [], ...(title ? { title } : {}) };
}

/** @throws ConversionRefused `too-much` for one nested so deeply that no reader follows it */
export function htmlToMarkdown(html: string): string {
  checkTags(html);
  return translator.translate(html.replace(/^\s*<\?xml[^>]*>/i, '')).trim();
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

/** Elements that have no end, or whose end may be left out. */
const endless =
  /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|dt|dd|tr|td|th|thead|tbody|tfoot|option|optgroup|colgroup|html|head|body)$/i;

function checkTags(html: string): void {
  let depth = 0;
  let tags = 0;
  for (const [tag, slash, name = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]{0,40})[^<>]*>/gi)) {
    if (++tags > mostTags) throw tooMuch(`it has more than ${mostTags} tags`);
    if (endless.test(name) || tag.endsWith('/>')) continue;
    depth = slash === '/' ? Math.max(0, depth - 1) : depth + 1;
    if (depth > deepest) throw tooMuch(`its elements are nested more than ${deepest} deep`);
  }
}
