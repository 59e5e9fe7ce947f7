/** Which list a style puts its paragraphs in: ECMA-376-1, 17.7.4 and 17.9. */
interface Style {
  readonly base: string | undefined;
  readonly list: string | undefined;
  readonly level: string | undefined;
  readonly isHeading: boolean;
}

/** Styles that are based on each other, one on the next. */
const longestChain = 16;

/**
 * The XML of a text in which each paragraph says itself which list it is in: the library does not look for that in styles, and takes `0`, which says that it
 * is in none although its style is, for a list.
 * @param styles the part of the document that has them
 */
export function withLists(text: string, styles: string): string {
  const lists = listsOf(styles);
  const pieces: string[] = [];
  let from = 0;
  let list: string | undefined;
  let behind = 0;
  for (const { 0: tag, 1: style, index } of lists.size > 0 ? text.matchAll(paragraphTags) : []) {
    if (style !== undefined) [list, behind] = [lists.get(style), index + tag.length];
    else {
      if (list !== undefined && !tag.startsWith('<w:numPr')) {
        pieces.push(text.slice(from, behind), list);
        from = behind;
      }
      list = undefined;
    }
  }
  return (pieces.join('') + text.slice(from)).replaceAll(noList, '');
}

const paragraphTags = /<w:pStyle\s+w:val="([^"<>]{1,255})"\s*\/>|<w:numPr[\s/>]|<w:pPrChange[\s>]|<\/w:pPr>/g;
const noList = /<w:numPr>(?:<w:ilvl\s[^<>]*>)?<w:numId\s+w:val="0"\s*\/><\/w:numPr>/g;

/** By the id of the style, what its paragraphs would say themselves. Headings have numbers of their own. */
function listsOf(text: string): ReadonlyMap<string, string> {
  const styles = new Map<string, Style>();
  for (const style of text.split('<w:style ').slice(1)) {
    const id = /w:styleId="([^"<>]{1,255})"/.exec(style)?.[1];
    if (id === undefined) continue;
    styles.set(id, {
      base: /<w:basedOn\s+w:val="([^"<>]{1,255})"/.exec(style)?.[1],
      list: /<w:numId\s+w:val="(\d{1,9})"/.exec(style)?.[1],
      level: /<w:ilvl\s+w:val="(\d)"/.exec(style)?.[1],
      isHeading: /<w:outlineLvl\s/.test(style),
    });
  }
  const lists = new Map<string, string>();
  for (const id of styles.keys()) {
    const chain: Style[] = [];
    for (let one = styles.get(id); one && chain.length < longestChain; one = styles.get(one.base ?? '')) chain.push(one);
    const list = chain.find((one) => one.list !== undefined)?.list;
    const level = chain.find((one) => one.level !== undefined)?.level ?? '0';
    if (list !== undefined && list !== '0' && !chain.some(({ isHeading }) => isHeading))
      lists.set(id, `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr>`);
  }
  return lists;
}
