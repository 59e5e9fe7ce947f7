import { slices } from '../search/slices.ts';
import { longestUrl } from './visiting.ts';

/** What a robots.txt says to us. */
export interface Robots {
  /** May the page be fetched? */
  allows(url: URL): boolean;
  /** Seconds between two fetches; 0: as we like. */
  readonly delay: number;
}

/** Bytes that are read of a robots.txt, as RFC 9309 §2.5 asks for: a rule behind them does not count. */
export const robotsBytes = 512_000;
const mostRules = 2000;
const longestDelay = 10;
/** By which groups name us. */
const ourName = 'dragoman';

interface Rule {
  readonly allows: boolean;
  /** The path between two `*`. */
  readonly pieces: readonly string[];
  /** The path ends with the last piece (`$`). */
  readonly isWhole: boolean;
  /** Of the rule's path: the longest one counts. */
  readonly length: number;
}

/** Pieces of one rule between its `*`: each is looked for in every address. */
const mostPieces = 16;

export const anything: Robots = { allows: () => true, delay: 0 };

/** Reads a robots.txt: the groups that name us, else those for everybody (RFC 9309 §2.2). */
export async function robotsIn(text: string, signal: AbortSignal): Promise<Robots> {
  const pause = slices(signal);
  const groups = { own: groupOf(), all: groupOf() };
  let named = new Set<'own' | 'all'>();
  let isNaming = false;
  let hasOwn = false;
  for (const line of linesOf(text)) {
    await pause();
    const [, word = '', value = ''] = /^\s*([a-z-]{1,20})\s*:([^#]*)/i.exec(line) ?? [];
    const said = value.trim();
    switch (word.toLowerCase()) {
      case 'user-agent': {
        if (!isNaming) named = new Set();
        isNaming = true;
        const whose = said === '*' ? 'all' : said.toLowerCase().split('/')[0] === ourName ? 'own' : undefined;
        if (whose) named.add(whose);
        hasOwn ||= whose === 'own';
        break;
      }
      case 'allow':
      case 'disallow':
        isNaming = false;
        for (const whose of named)
          if (said !== '' && groups[whose].rules.length < mostRules) groups[whose].rules.push(ruleOf(said, word.toLowerCase() === 'allow'));
        break;
      case 'crawl-delay':
        isNaming = false;
        for (const whose of named) groups[whose].delay = Math.min(longestDelay, Math.max(0, Number(said) || 0));
        break;
      default:
    }
  }
  const { rules, delay } = hasOwn ? groups.own : groups.all;
  return {
    delay,
    allows({ pathname, search }) {
      if (pathname === '/robots.txt') return true;
      const path = unescaped(pathname + search);
      let best: Rule | undefined;
      for (const rule of rules) {
        const isBetter = !best || rule.length > best.length || (rule.length === best.length && rule.allows);
        if (isBetter && matches(rule, path)) best = rule;
      }
      return best?.allows ?? true;
    },
  };
}

const groupOf = (): { rules: Rule[]; delay: number } => ({ rules: [], delay: 0 });

function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    const end = text.slice(at, at + 65_536).search(/[\r\n]/);
    const to = end < 0 ? at + 65_536 : at + end;
    yield text.slice(at, Math.min(to, at + longestUrl + 100));
    at = to + 1;
  }
}

function ruleOf(path: string, allows: boolean): Rule {
  const isWhole = path.endsWith('$');
  const pieces = unescaped(isWhole ? path.slice(0, -1) : path).split(/\*+/);
  return pieces.length > mostPieces
    ? { allows: false, isWhole: false, length: path.length, pieces: [pieces[0]!] } // such a rule forbids more than it says
    : { allows, isWhole, length: path.length, pieces };
}

/** So that two spellings of one path are equal. What is escaped for a reason stays so. */
function unescaped(path: string): string {
  return path.replaceAll(/%([0-9a-f]{2})/gi, (whole, digits: string) => {
    const sign = String.fromCharCode(Number.parseInt(digits, 16));
    return /[\w.~-]/.test(sign) ? sign : whole.toUpperCase();
  });
}

/** Each piece is looked for once, from where the one before it ends: no backtracking. */
function matches({ pieces, isWhole }: Rule, path: string): boolean {
  if (!path.startsWith(pieces[0]!)) return false;
  let at = pieces[0]!.length;
  if (pieces.length === 1) return !isWhole || at === path.length;
  const last = pieces.length - 1;
  for (let number = 1; number < pieces.length; number++) {
    const piece = pieces[number]!;
    if (number === last && isWhole) return path.length - piece.length >= at && path.endsWith(piece);
    const found = path.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return true;
}
