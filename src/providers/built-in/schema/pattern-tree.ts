/** The syntax tree of a regular expression. */
export type Tree =
  | One
  | { readonly type: 'row' | 'choice'; readonly of: readonly Tree[] }
  | { readonly type: 'repeat'; readonly of: Tree; readonly min: number; readonly max: number }
  | Look
  | { readonly type: 'start' | 'end' | 'edge' | 'no-edge' };

/** Lookahead, or lookbehind: whether something matches that begins, or ends, here. */
interface Look {
  readonly type: 'ahead' | 'behind';
  readonly of: Tree;
  readonly isNegative: boolean;
}

interface One {
  readonly type: 'one';
  readonly is: (point: string) => boolean;
  /** Characters that match, computed on demand. */
  readonly samples: () => readonly string[];
  /** The cost of `is`, in comparisons. */
  readonly weight: number;
  /** The only matching character, if there is only one. */
  readonly point?: string;
}

/** @returns undefined for an unsupported pattern */
export function readTree(source: string): Tree | undefined {
  const reader = new Reader(source);
  const tree = reader.choice(0);
  return reader.done ? tree : undefined;
}

const letters = 'abcdefghijklmnopqrstuvwxyz';
const digits = '0123456789';
const printable = Array.from(`${letters}${letters.toUpperCase()}${digits} -_.,:;!?@#$%&*+/='"()[]{}<>|~^\\\``);

class Reader {
  readonly #points: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#points = Array.from(source);
  }

  get done(): boolean {
    return this.#at === this.#points.length;
  }

  choice(depth: number): Tree | undefined {
    if (depth > 30) return undefined;
    const rows: Tree[] = [];
    do {
      const row = this.#row(depth);
      if (!row) return undefined;
      rows.push(row);
    } while (this.#take('|'));
    return rows.length === 1 ? rows[0] : { type: 'choice', of: rows };
  }

  #row(depth: number): Tree | undefined {
    const of: Tree[] = [];
    while (!this.done && this.#peek() !== '|' && this.#peek() !== ')') {
      const one = this.#one(depth);
      const repeated = one && this.#repeated(one);
      if (!repeated) return undefined;
      of.push(repeated);
    }
    return { type: 'row', of };
  }

  #repeated(of: Tree): Tree | undefined {
    let min: number;
    let max: number;
    if (this.#take('*')) [min, max] = [0, Infinity];
    else if (this.#take('+')) [min, max] = [1, Infinity];
    else if (this.#take('?')) [min, max] = [0, 1];
    else {
      const braces = this.#peek() === '{' ? /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#points.slice(this.#at, this.#at + 12).join('')) : null;
      if (!braces) return of;
      this.#at += braces[0].length;
      min = Number(braces[1]);
      max = braces[2] === undefined ? min : braces[3] ? Number(braces[3]) : Infinity;
    }
    this.#take('?');
    return max < min || withoutWidth.has(of.type) ? undefined : { type: 'repeat', of, min, max };
  }

  #one(depth: number): Tree | undefined {
    const point = this.#points[this.#at++]!;
    switch (point) {
      case '^':
        return { type: 'start' };
      case '$':
        return { type: 'end' };
      case '.':
        return { type: 'one', is: (one) => !lineEnds.has(one), samples: () => printable, weight: 1 };
      case '(': {
        if (this.#take('?')) {
          const isBehind = this.#take('<');
          if (this.#peek() === '=' || this.#peek() === '!') return this.#look(isBehind ? 'behind' : 'ahead', depth);
          if (isBehind) while (!this.done && !this.#take('>')) this.#at++;
          else if (!this.#take(':')) return undefined;
        }
        const inner = this.choice(depth + 1);
        return this.#take(')') ? inner : undefined;
      }
      case '[':
        return this.#set();
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        return undefined;
      default:
        return literal(point);
    }
  }

  #look(type: Look['type'], depth: number): Tree | undefined {
    const isNegative = this.#points[this.#at++] === '!';
    const of = this.choice(depth + 1);
    return of && this.#take(')') ? { type, of, isNegative } : undefined;
  }

  #set(): Tree | undefined {
    const negative = this.#take('^');
    const parts: One[] = [];
    while (!this.#take(']')) {
      if (this.done) return undefined;
      const from = this.#member();
      if (!from) return undefined;
      if (this.#peek() === '-' && this.#points[this.#at + 1] !== ']' && from.point !== undefined) {
        this.#at++;
        const to = this.done ? undefined : this.#member();
        if (to?.point === undefined) return undefined;
        const [low, high] = [from.point.codePointAt(0)!, to.point.codePointAt(0)!];
        if (high < low) return undefined;
        const samples = () => Array.from({ length: Math.min(26, high - low + 1) }, (_, step) => String.fromCodePoint(low + step));
        parts.push({ type: 'one', is: (one) => one.codePointAt(0)! >= low && one.codePointAt(0)! <= high, samples, weight: 1 });
      } else parts.push(from);
    }
    const is = (one: string) => parts.some((part) => part.is(one)) !== negative;
    const samples = once(() => (negative ? printable.filter(is) : parts.flatMap((part) => part.samples())));
    return { type: 'one', is, samples, weight: 1 + parts.length };
  }

  #member(): One | undefined {
    const point = this.#points[this.#at++]!;
    if (point !== '\\') return literal(point);
    if (this.#take('b')) return literal('\b');
    const escape = this.#escape();
    return escape?.type === 'one' ? escape : undefined;
  }

  #escape(): Tree | undefined {
    const point = this.#points[this.#at++];
    switch (point) {
      case undefined:
      case 'k':
        return undefined;
      case 'b':
        return { type: 'edge' };
      case 'B':
        return { type: 'no-edge' };
      case 'd':
      case 'D':
        return set(/[0-9]/, Array.from(digits), point === 'D');
      case 'w':
      case 'W':
        return set(/\w/, Array.from(letters + digits), point === 'W');
      case 's':
      case 'S':
        return set(/\s/, Array.from(' \t\n'), point === 'S');
      case 'p':
      case 'P': {
        const end = this.#points.indexOf('}', this.#at);
        const name = this.#points.slice(this.#at, end + 1).join('');
        if (end < 0 || !/^\{[A-Za-z_]{1,40}(?:=[A-Za-z_]{1,40})?\}$/.test(name)) return undefined;
        this.#at = end + 1;
        try {
          return set(new RegExp(`\\p${name}`, 'u'), Array.from('aA1 ÄäЖ中!'), point === 'P');
        } catch {
          return undefined;
        }
      }
      case 'x':
        return this.#coded(/^[0-9a-f]{2}/i);
      case 'u':
        return this.#coded(/^(?:[0-9a-f]{4}|\{[0-9a-f]{1,6}\})/i);
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'v':
      case '0':
        return literal({ n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', 0: '\0' }[point]);
      default:
        return /[1-9]/.test(point) ? undefined : literal(point);
    }
  }

  #coded(form: RegExp): Tree | undefined {
    const digits = form.exec(this.#points.slice(this.#at, this.#at + 8).join(''))?.[0];
    if (digits === undefined) return undefined;
    this.#at += digits.length;
    const point = Number.parseInt(digits.replace(/[{}]/g, ''), 16);
    return point <= 0x10ffff ? literal(String.fromCodePoint(point)) : undefined;
  }

  #peek(): string | undefined {
    return this.#points[this.#at];
  }

  #take(point: string): boolean {
    if (this.#points[this.#at] !== point) return false;
    this.#at++;
    return true;
  }
}

/** What matches no character, and cannot be repeated. */
const withoutWidth: ReadonlySet<Tree['type']> = new Set(['start', 'end', 'edge', 'no-edge', 'ahead', 'behind']);

const lineEnds = new Set(['\n', '\r', '\u2028', '\u2029']);

const literal = (point: string): One => ({ type: 'one', is: (one) => one === point, samples: () => [point], weight: 0, point });

function set(member: RegExp, samples: readonly string[], negative: boolean): One {
  const is = (one: string) => member.test(one) !== negative;
  return { type: 'one', is, samples: once(() => [...samples, ...printable].filter(is)), weight: 1 };
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}
