/**
 * A regular expression as an operator writes it: JavaScript's, perhaps behind `(?i)`, `(?s)` or `(?m)` as other languages spell the flags that hold for all of it.
 *
 * @throws SyntaxError
 */
export function writtenPattern(text: string): RegExp {
  const [flags = '', letters = ''] = /^\(\?([ims]+)\)/.exec(text) ?? [];
  return new RegExp(text.slice(flags.length), `g${[...new Set(letters)].join('')}`);
}
