/**
 * The words of a Markdown text, as they are read aloud: without the marks of headings, lists, emphasis, tables, code and links, and without numbers of citations. Each
 * line of it ends a sentence.
 */
export function spokenText(markdown: string): string {
  const lines: string[] = [];
  for (const line of markdown.split(/\r\n?|\n/)) {
    const words = isOrnament(line) ? '' : inline(line.replace(opening, ''));
    lines.push(words.trim());
  }
  return lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** Quotation marks, list marks and headings at the beginning of a line. */
const opening = /^[\s>]{0,40}(?:#{1,6}\s|[-*+•]\s(?:\[[ xX]\]\s)?|\d{1,4}[.)]\s)?/;

/** A fence of code, a rule, or the line below a table's head. */
function isOrnament(line: string): boolean {
  const bare = line.slice(0, 1000).replace(/[\s>]/g, '');
  return /^(?:`{3,}|~{3,})/.test(bare) || (bare.length > 2 && /^(?:-+|\*+|_+|=+|[|:+-]+)$/.test(bare));
}

/** Characters of a link's text, and of its address. */
const link = /!?\[([^[\]]{0,500})\](?:\([^()\s]{0,1000}(?:\s"[^"]{0,200}")?\)|\[[^[\]]{0,100}\])/g;
const citation = /\s?\[\d{1,4}(?:, ?\d{1,4}){0,9}\]/g;
const tag = /<\/?[a-zA-Z][^<>]{0,200}>/g;
const address = /\bhttps?:\/\/(?:www\.)?([^\s/<>()]{1,200})[^\s<>()]{0,1000}/g;

function inline(line: string): string {
  return line
    .replace(link, '$1')
    .replace(citation, '')
    .replace(tag, ' ')
    .replace(address, '$1')
    .replace(/\\[!-/:-@[-`{-~]|`{1,3}|\*{1,3}|~~/g, (mark) => (mark.startsWith('\\') ? mark.slice(1) : ''))
    .replace(/(^|[\s(])_{1,3}(?=\S)|(?<=\S)_{1,3}(?=[\s).,;:!?]|$)/g, '$1')
    .replace(/^\s{0,10}\|/, '')
    .replace(/\s{0,10}\|\s{0,10}$/, '.')
    .replace(/\s{0,10}\|/g, ',');
}
