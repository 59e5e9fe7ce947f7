import { readTree, type Tree } from './pattern-tree.ts';

/**
 * Regular expressions of JSON schemas, read by us: a JavaScript one may take years for a short text (`(a+)+$`), this one takes states × characters.
 * Understood: literals, classes, `\d \w \s` and their opposites, `\p{…}`, groups, `|`, `* + ? {n,m}`, `^` and `$`. Looking around and back is not.
 */
export interface Pattern {
  matches(text: string): boolean;
  /** A text that matches; `extra` repetitions where more are allowed, another choice for each `variant`. */
  sample(extra: number, variant: number): string;
}

/** @returns nothing where the pattern is not understood or has more than 2,000 states */
export function readPattern(source: string): Pattern | undefined {
  if (source.length > 1000) return undefined;
  const tree = readTree(source);
  if (!tree) return undefined;
  const program: State[] = [];
  if (!compile(tree, program, { left: 20_000 })) return undefined;
  program.push({ type: 'match' });
  return { matches: (text) => run(program, text), sample: (extra, variant) => sample(tree, extra, variant, { left: 70_000 }) };
}

/** Steps that may still be taken. */
interface Steps {
  left: number;
}

type State =
  | { readonly type: 'one'; readonly is: (point: string) => boolean }
  | { type: 'fork'; a: number; b: number }
  | { readonly type: 'start' | 'end' | 'match' };

/** @returns false when there are too many states */
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

/** All states at once, a character at a time; a match may start anywhere. A search that takes more than 500,000 steps has found nothing. */
function run(program: readonly State[], text: string): boolean {
  const points = Array.from(text);
  let left = 500_000;
  let live: number[] = [];
  for (let at = 0; at <= points.length; at++) {
    const seen = new Set<number>();
    const next: number[] = [];
    const open = [...live, 0];
    while (open.length > 0) {
      const place = open.pop()!;
      if (seen.has(place)) continue;
      if (left-- <= 0) return false;
      seen.add(place);
      const state = program[place]!;
      if (state.type === 'match') return true;
      if (state.type === 'fork') open.push(state.a, state.b);
      else if (state.type === 'one') {
        if (at < points.length && state.is(points[at]!)) next.push(place + 1);
      } else if (at === (state.type === 'start' ? 0 : points.length)) open.push(place + 1);
    }
    live = next;
  }
  return false;
}

function sample(tree: Tree, extra: number, variant: number, steps: Steps): string {
  if (steps.left-- <= 0) return '';
  switch (tree.type) {
    case 'one': {
      const points = Array.from(tree.samples);
      return points[variant % Math.max(1, points.length)] ?? '';
    }
    case 'row':
      return tree.of.map((one) => sample(one, extra, variant, steps)).join('');
    case 'choice':
      return sample(tree.of[variant % tree.of.length]!, extra, variant, steps);
    case 'repeat': {
      let text = '';
      for (let count = 0; count < Math.min(tree.max, tree.min + extra) && steps.left > 0; count++) text += sample(tree.of, extra, variant + count, steps);
      return text;
    }
    case 'start':
    case 'end':
      return '';
    default:
      return tree satisfies never;
  }
}
