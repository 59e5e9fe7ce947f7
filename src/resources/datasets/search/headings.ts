export interface Heading {
  readonly level: number;
  readonly text: string;
}

const mostCharacters = 120;

/** The path of headings once another is reached: those above it, and it. */
export function pathWith(path: readonly Heading[], level: number, line: string): readonly Heading[] {
  return [...path.filter((above) => above.level < level), { level, text: headingText(line) }];
}

/** A heading as one short line without its marks. */
export function headingText(line: string): string {
  const text = line
    .slice(0, 4 * mostCharacters)
    .replace(/^[\s#]+/, '')
    .replace(/[\s#]+/g, ' ')
    .trimEnd();
  const points = Array.from(text);
  return points.length > mostCharacters ? `${points.slice(0, mostCharacters).join('').trimEnd()}…` : text;
}
