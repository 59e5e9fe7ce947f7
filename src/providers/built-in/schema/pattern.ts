import { readTree, type Tree } from './pattern-tree.ts';

/**
 * The regular expressions of JSON schemas, with a matcher of our own: a JavaScript expression may take years for a short text (`(a+)+$`), this one takes states
 * × characters. Supported: literals, classes, `\d \w \s` and their opposites, `\p{…}`, groups, `|`, `* + ? {n,m}`, `^` and `$`. Not supported: lookaround and
 * backreferences.
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
    matches: (text, spending = upTo(100_000)) => search.finds(text, spending),
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

type State = Extract<Tree, { type: 'one' }> | { type: 'fork'; a: number; b: number } | { readonly type: 'start' | 'end' | 'match' };

/** @returns false if there are too many states */
function compile(tree: Tree, program: State[], steps: Steps): boolean {
  if (program.length > 2000 || steps.left-- <= 0) return false;
  switch (tree.type) {
    case 'one':
    case 'start':
    case 'end':
      program.push(tree);
      return true;
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

/** Simulates all states at once, one character at a time; a match may start anywhere. */
class Search {
  readonly #program: readonly State[];
  /** For each state, the character at which it was last reached, counted over all texts. */
  readonly #reached: Float64Array;
  #turn = 0;

  constructor(program: readonly State[]) {
    this.#program = program;
    this.#reached = new Float64Array(program.length);
  }

  finds(text: string, work: Spending): boolean {
    let live: number[] = [];
    let next: number[] = [];
    for (let at = 0; at <= text.length;) {
      const point = at < text.length ? String.fromCodePoint(text.codePointAt(at)!) : '';
      this.#turn++;
      live.push(0);
      let steps = 1;
      while (live.length > 0) {
        const index = live.pop()!;
        if (this.#reached[index] === this.#turn) continue;
        this.#reached[index] = this.#turn;
        const state = this.#program[index]!;
        steps++;
        if (state.type === 'match') return true;
        if (state.type === 'fork') live.push(state.a, state.b);
        else if (state.type === 'one') {
          steps += state.weight;
          if (point !== '' && state.is(point)) next.push(index + 1);
        } else if (state.type === 'start' ? at === 0 : point === '') live.push(index + 1);
      }
      if (!work.spend(steps / 16)) return false;
      [live, next] = [next, live];
      at += point.length || 1;
    }
    return false;
  }
}

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
      return '';
    default:
      return tree satisfies never;
  }
}
