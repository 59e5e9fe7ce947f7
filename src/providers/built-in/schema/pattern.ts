import { readTree, type Tree } from './pattern-tree.ts';

/**
 * The regular expressions of JSON schemas, with a matcher of our own: a JavaScript expression may take years for a short text (`(a+)+$`), this one takes states
 * × characters, for each lookbehind that once more, and for each lookahead that at each character. Supported: literals, classes, `\d \w \s` and their
 * opposites, `\p{…}`, groups, `|`, `* + ? {n,m}`, `^`, `$`, `\b`, `\B`, lookahead and lookbehind. Not supported: backreferences.
 */
export interface Pattern {
  /** @returns false also if the work limit is reached */
  matches(text: string, work?: Spending): boolean;
  /**
   * Generates a matching text, with `extra` repetitions where more are allowed and different choices for each `variant`. It is incomplete if the work limit is
   * reached.
   */
  sample(extra: number, variant: number, work?: Spending): string;
}

/** The work limit of a pattern, in steps of at most one microsecond. */
export interface Spending {
  /** @returns false if the limit is reached */
  spend(steps: number): boolean;
}

/** @returns undefined if the pattern is unsupported or has more than 2,000 states */
export function readPattern(source: string, work: Spending = upTo(100_000)): Pattern | undefined {
  if (source.length > 1000) return undefined;
  const tree = readTree(source);
  if (!tree) return undefined;
  const program: State[] = [];
  if (!compile(tree, program, { left: 20_000 })) return undefined;
  program.push({ type: 'match' });
  if (!work.spend(program.length / 4)) return undefined;
  const search = new Search(program);
  return {
    matches: (text, spending = upTo(100_000)) => search.finds({ text, work: spending, behind: new Map() }),
    sample: (extra, variant, spending = upTo(20_000)) => sample(tree, extra, variant, spending),
  };
}

function upTo(steps: number): Spending {
  let left = steps;
  return { spend: (some) => (left -= some) >= 0 };
}

interface Steps {
  left: number;
}

type State =
  | Extract<Tree, { type: 'one' }>
  | { type: 'fork'; a: number; b: number }
  | { readonly type: 'ahead' | 'behind'; readonly of: Search; readonly isNegative: boolean }
  | { readonly type: 'start' | 'end' | 'edge' | 'no-edge' }
  | { readonly type: 'match' };

/** @returns false if there are too many states */
function compile(tree: Tree, program: State[], steps: Steps): boolean {
  if (program.length > 2000 || steps.left-- <= 0) return false;
  switch (tree.type) {
    case 'one':
    case 'start':
    case 'end':
    case 'edge':
    case 'no-edge':
      program.push(tree);
      return true;
    case 'ahead':
    case 'behind': {
      const of: State[] = [];
      if (!compile(tree.of, of, steps)) return false;
      of.push({ type: 'match' });
      program.push({ type: tree.type, of: new Search(of), isNegative: tree.isNegative });
      return true;
    }
    case 'row':
      return tree.of.every((one) => compile(one, program, steps));
    case 'choice': {
      const [first, ...others] = tree.of;
      if (others.length === 0) return compile(first!, program, steps);
      const fork: State = { type: 'fork', a: program.length + 1, b: 0 };
      program.push(fork);
      if (!compile(first!, program, steps)) return false;
      const jump: State = { type: 'fork', a: 0, b: 0 };
      program.push(jump);
      fork.b = program.length;
      if (!compile({ type: 'choice', of: others }, program, steps)) return false;
      jump.a = jump.b = program.length;
      return true;
    }
    case 'repeat': {
      for (let count = 0; count < tree.min; count++) if (!compile(tree.of, program, steps)) return false;
      if (tree.max === Infinity) {
        const fork: State = { type: 'fork', a: program.length + 1, b: 0 };
        const at = program.push(fork) - 1;
        if (!compile(tree.of, program, steps)) return false;
        program.push({ type: 'fork', a: at, b: at });
        fork.b = program.length;
        return true;
      }
      const forks: { type: 'fork'; a: number; b: number }[] = [];
      for (let count = tree.min; count < tree.max; count++) {
        const fork = { type: 'fork' as const, a: program.length + 1, b: 0 };
        forks.push(fork);
        program.push(fork);
        if (!compile(tree.of, program, steps)) return false;
      }
      for (const fork of forks) fork.b = program.length;
      return true;
    }
    default:
      return tree satisfies never;
  }
}

/** The reading of one text. */
interface Reading {
  readonly text: string;
  readonly work: Spending;
  /** How far the ends of the matches of each lookbehind are known. */
  readonly behind: Map<Search, Walk>;
}

interface Walk {
  at: number;
  live: number[];
  next: number[];
  /** Matches begin where the walk does, and nowhere else. */
  readonly isAnchored: boolean;
  /** Where matches end: the walk goes on behind the first. */
  readonly ends?: Set<number>;
}

/** What it takes to remember an end, in visits of a state. */
const costOfEnd = 8;

/** Simulates all states at once, one character at a time. */
class Search {
  readonly #program: readonly State[];
  /** For each state, the character at which it was last reached, counted over all texts. */
  readonly #reached: Float64Array;
  #turn = 0;

  constructor(program: readonly State[]) {
    this.#program = program;
    this.#reached = new Float64Array(program.length);
  }

  /** A match may begin anywhere. */
  finds(reading: Reading): boolean {
    return this.#findsOn({ at: 0, live: [], next: [], isAnchored: false }, reading);
  }

  findsFrom(from: number, reading: Reading): boolean {
    return this.#findsOn({ at: from, live: [0], next: [], isAnchored: true }, reading);
  }

  /** Whether a match that may begin anywhere ends at `end`. The text is read once for all ends. */
  findsUpTo(end: number, reading: Reading): boolean {
    const known = reading.behind.get(this);
    const walk = known ?? { at: 0, live: [], next: [], isAnchored: false, ends: new Set() };
    if (!known) reading.behind.set(this, walk);
    while (walk.at <= end && this.#step(walk, reading) === 'on');
    return walk.ends!.has(end);
  }

  #findsOn(walk: Walk, reading: Reading): boolean {
    for (;;) {
      const came = this.#step(walk, reading);
      if (came !== 'on') return came === 'found' && reading.work.spend(0);
    }
  }

  /** Reads one character. */
  #step(walk: Walk, reading: Reading): 'on' | 'found' | 'over' {
    const { at, live, next, isAnchored, ends } = walk;
    const { text, work } = reading;
    if (at > text.length) return 'over';
    const point = at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : '';
    this.#turn++;
    if (!isAnchored) live.push(0);
    let steps = 1;
    while (live.length > 0) {
      const index = live.pop()!;
      if (this.#reached[index] === this.#turn) continue;
      this.#reached[index] = this.#turn;
      const state = this.#program[index]!;
      steps++;
      if (state.type === 'match') {
        if (!ends) return 'found';
        ends.add(at);
        steps += costOfEnd;
      } else if (state.type === 'fork') live.push(state.a, state.b);
      else if (state.type === 'one') {
        steps += state.weight;
        if (point !== '' && state.is(point)) next.push(index + 1);
      } else if (holds(state, at, reading)) live.push(index + 1);
    }
    if (!work.spend(steps / 16) || (isAnchored && next.length === 0)) return 'over';
    walk.live = next;
    walk.next = live;
    walk.at += point.length || 1;
    return 'on';
  }
}

/** Whether a state that matches no character holds at a place. */
function holds(state: Exclude<State, { readonly type: 'one' | 'fork' | 'match' }>, at: number, reading: Reading): boolean {
  const { text } = reading;
  switch (state.type) {
    case 'start':
      return at === 0;
    case 'end':
      return at === text.length;
    case 'edge':
      return isEdge(text, at);
    case 'no-edge':
      return !isEdge(text, at);
    case 'ahead':
      return state.of.findsFrom(at, reading) !== state.isNegative;
    case 'behind':
      return state.of.findsUpTo(at, reading) !== state.isNegative;
    default:
      return state satisfies never;
  }
}

const isEdge = (text: string, at: number): boolean => /\w/.test(text.charAt(at - 1)) !== /\w/.test(text.charAt(at));

function sample(tree: Tree, extra: number, variant: number, work: Spending): string {
  if (!work.spend(0.25)) return '';
  switch (tree.type) {
    case 'one': {
      const points = tree.samples();
      return points[variant % Math.max(1, points.length)] ?? '';
    }
    case 'row':
      return tree.of.map((one) => sample(one, extra, variant, work)).join('');
    case 'choice':
      return sample(tree.of[variant % tree.of.length]!, extra, variant, work);
    case 'repeat': {
      let text = '';
      for (let count = 0; count < Math.min(tree.max, tree.min + extra) && work.spend(0.1); count++) text += sample(tree.of, extra, variant + count, work);
      return text;
    }
    case 'start':
    case 'end':
    case 'edge':
    case 'no-edge':
    case 'ahead':
    case 'behind':
      return '';
    default:
      return tree satisfies never;
  }
}
