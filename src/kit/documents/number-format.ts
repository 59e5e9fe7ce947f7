/** What a number is shown as; undefined where it is better shown as it is. */
export type Show = (value: number) => string | undefined;

/** Formats that need no definition, by their numbers (ECMA-376-1, 18.8.30). */
const builtIn: Readonly<Record<number, string>> = {
  1: '0',
  2: '0.00',
  3: '#,##0',
  4: '#,##0.00',
  5: '"$"#,##0;("$"#,##0)',
  6: '"$"#,##0;("$"#,##0)',
  7: '"$"#,##0.00;("$"#,##0.00)',
  8: '"$"#,##0.00;("$"#,##0.00)',
  9: '0%',
  10: '0.00%',
  37: '#,##0;(#,##0)',
  38: '#,##0;(#,##0)',
  39: '#,##0.00;(#,##0.00)',
  40: '#,##0.00;(#,##0.00)',
  41: '#,##0;(#,##0);"-"',
  42: '"$"#,##0;("$"#,##0);"-"',
  43: '#,##0.00;(#,##0.00);"-"',
  44: '"$"#,##0.00;("$"#,##0.00);"-"',
};

/** @param id of a format that needs no definition */
export const builtInNumbers = (id: number): Show | undefined => (Object.hasOwn(builtIn, id) ? numbersBy(builtIn[id]!) : undefined);

/** Beyond it numbers are not exact. */
const tooLarge = 1e15;

/**
 * Numbers as a format shows them: percentages, currencies, thousands, decimals and units.
 * @param code without conditions, exponents and fractions, for which there is no answer
 */
export function numbersBy(code: string): Show | undefined {
  const sections = sectionsOf(code);
  if (sections.every((section) => section === undefined)) return undefined;
  return (value) => {
    if (!(Math.abs(value) < tooLarge)) return undefined;
    const at = value < 0 && sections.length > 1 ? 1 : value === 0 && sections.length > 2 ? 2 : 0;
    const section = sections[at];
    if (!section) return undefined;
    const number = section.show?.(Math.abs(value)) ?? '';
    const sign = value < 0 && at === 0 && /[1-9]/.test(number) ? '-' : '';
    return (sign + section.before + number + section.after).trim() || undefined;
  };
}

/** What a format shows of one sign: the digits, and the text around them. */
interface Section {
  readonly before: string;
  readonly after: string;
  readonly show?: (value: number) => string;
}

/** Of positive numbers, of negative ones, of zero; undefined for one that cannot be read. */
function sectionsOf(code: string): readonly (Section | undefined)[] {
  const tokens = tokensOf(code.slice(0, 1000));
  const sections: (Section | undefined)[] = [];
  for (let from = 0, at = 0; at <= tokens.length && sections.length < 3; at++) {
    if (at < tokens.length && tokens[at]!.type !== 'end') continue;
    sections.push(sectionOf(tokens.slice(from, at)));
    from = at + 1;
  }
  return tokens.some(({ type }) => type === 'condition') ? [] : sections;
}

interface Token {
  readonly type: 'text' | 'digits' | 'percent' | 'end' | 'condition' | 'other';
  readonly text: string;
}

function tokensOf(code: string): readonly Token[] {
  return Array.from(code.matchAll(/"([^"]*)"|\\(.)|[_*].|\[([^\][]*)\]|[0#?.,]+|[a-z@/]+|./gisu), ([whole, quoted, escaped, bracket]): Token => {
    if (quoted !== undefined || escaped !== undefined) return { type: 'text', text: quoted ?? escaped! };
    if (bracket !== undefined) return bracket.startsWith('$') ? { type: 'text', text: bracket.slice(1).split('-', 1)[0]! } : { type: /[<>=]/.test(bracket) ? 'condition' : 'text', text: '' }; // prettier-ignore
    if (/^[_*]./su.test(whole)) return { type: 'text', text: '' };
    if (/^[0#?.,]/.test(whole)) return { type: /[0#?]/.test(whole) ? 'digits' : 'text', text: whole };
    if (/^[a-z@/]/i.test(whole)) return { type: 'other', text: whole };
    return { type: whole === '%' ? 'percent' : whole === ';' ? 'end' : 'text', text: whole };
  });
}

function sectionOf(tokens: readonly Token[]): Section | undefined {
  const digits = tokens.filter(({ type }) => type === 'digits');
  if (digits.length > 1 || tokens.some(({ type }) => type === 'other')) return undefined;
  const at = digits.length === 0 ? tokens.length : tokens.indexOf(digits[0]!);
  const text = (some: readonly Token[]) => some.map((token) => token.text).join('');
  const sides = { before: text(tokens.slice(0, at)), after: text(tokens.slice(at + 1)) };
  if (digits.length === 0) return sides;
  const show = digitsBy(digits[0]!.text, tokens.filter(({ type }) => type === 'percent').length);
  return show && { ...sides, show };
}

/** @param pattern such as `#,##0.00`; each comma behind its last digit divides by a thousand */
function digitsBy(pattern: string, percents: number): Section['show'] {
  const [written = '', decimals = '', more] = bare(pattern).split('.');
  if (more !== undefined || decimals.includes(',')) return undefined;
  const whole = bare(written);
  const thousands = pattern.length - bare(pattern).length + written.length - whole.length;
  const zeros = (text: string) => text.replaceAll(/[^0]/g, '').length;
  const digits = Math.max(1, zeros(whole));
  if (digits > 20 || decimals.length > 30 || percents > 2 || thousands > 4) return undefined;
  let formatter: Intl.NumberFormat | undefined;
  const options = {
    useGrouping: /[0#?],[0#?]/.test(whole),
    minimumIntegerDigits: digits,
    minimumFractionDigits: zeros(decimals),
    maximumFractionDigits: decimals.length,
  };
  const scale = 100 ** percents / 1000 ** thousands;
  return (value) => {
    formatter ??= new Intl.NumberFormat('en-US', options); // takes some KB
    const text = formatter.format(Number((value * scale).toPrecision(15)));
    return pattern.includes('0') || /[1-9]/.test(text) ? text : '';
  };
}

/** Without the commas at its end. */
function bare(pattern: string): string {
  let end = pattern.length;
  while (pattern[end - 1] === ',') end--;
  return pattern.slice(0, end);
}
