/** Compiles a regular expression in JavaScript syntax that may start with inline flags for the whole pattern: `(?i)`, `(?s)`, `(?m)`. @throws SyntaxError */
export function writtenPattern(text: string): RegExp {
  const [flags = '', letters = ''] = /^\(\?([ims]+)\)/.exec(text) ?? [];
  return new RegExp(text.slice(flags.length), `g${[...new Set(letters)].join('')}`);
}
