import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';

/** A regular expression of the sources. */
export interface Expression {
  /** `kit/json/check.ts /^[aio]/`: its file below `src/`, and how it is written there. */
  readonly name: string;
  readonly source: string;
  readonly flags: string;
}

export interface Collected {
  readonly expressions: readonly Expression[];
  /** Expressions that are put together while the program runs, by their file and code. */
  readonly dynamic: readonly string[];
}

/** Every regular expression of the program below a folder: literals, `new RegExp`, and the `pattern` of a schema. Tests are left out. */
export function expressionsIn(folder: string): Collected {
  const expressions = new Map<string, Expression>();
  const dynamic = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue;
    const text = readFileSync(join(folder, file), 'utf8');
    const add = (source: string, flags: string) => {
      const name = `${file} /${source}/${flags}`;
      expressions.set(name, { name, source, flags });
    };
    // oxlint-disable-next-line typescript/no-deprecated -- vitest hands on no other parser
    for (const node of nodesOf(parseAst(text, { lang: 'ts' }))) {
      if (node.regex) add(node.regex.pattern, node.regex.flags);
      else if (node.callee?.name === 'RegExp') {
        const [source, flags] = node.arguments ?? [];
        if (typeof source?.value === 'string') add(source.value, typeof flags?.value === 'string' ? flags.value : '');
        else dynamic.add(`${file} ${text.slice(node.start, node.end)}`);
      } else if (node.type === 'Property' && node.key?.name === 'pattern' && typeof node.value === 'object' && typeof node.value?.value === 'string')
        add(node.value.value, 'u');
    }
  }
  return { expressions: [...expressions.values()], dynamic: [...dynamic] };
}

/** What is read of a node of the syntax tree. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
  readonly arguments?: readonly { readonly value?: unknown }[];
  readonly key?: { readonly name?: string };
  readonly value?: { readonly value?: unknown };
}

function* nodesOf(tree: unknown): Generator<Node> {
  if (tree === null || typeof tree !== 'object') return;
  if ('type' in tree && 'start' in tree) yield tree as Node;
  for (const inner of Object.values(tree)) yield* nodesOf(inner);
}
