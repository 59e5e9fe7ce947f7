/**
 * What the tests claim to prove: ids in brackets in the titles of tests that run, as in `test('a wrong key is 401 [chat.401]', …)`.
 * Read from the source, so nothing has to run; comments, skipped and unwritten tests claim nothing.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';

/** One claim: this test says that it proves this id. */
export interface Claim {
  readonly id: string;
  /** As `path:line`. */
  readonly where: string;
}

/** Every claim of the server: TypeScript tests under src and test, Python checks under test. */
export function claimsOf(root: string, id: RegExp): Claim[] {
  return globSync(['src/**/*.test.ts', 'test/**/*.test.ts', 'test/**/*.py'], { cwd: root })
    .toSorted()
    .flatMap((path) => claimsIn(path, readFileSync(join(root, path), 'utf8'), id));
}

/** The claims of one file. `id` describes an id without its brackets. */
export function claimsIn(path: string, source: string, id: RegExp): Claim[] {
  // oxlint-disable-next-line typescript/no-deprecated -- its successor comes with vite, which is vitest's dependency and not ours
  const titles = path.endsWith('.py') ? pythonTitles(source) : titlesOf(parseAst(source, { lang: 'ts' }) as unknown as Node);
  const bracketed = new RegExp(`\\[(${id.source})\\]`, 'g');
  return titles.flatMap(({ text, at }) => {
    const line = source.slice(0, at).split('\n').length;
    return [...text.matchAll(bracketed)].map((found) => ({ id: found[1]!, where: `${path}:${line}` }));
  });
}

/** What does not add up between a table of ids, the list of those not proven yet, and the claims; empty when all is well. */
export function disagreements(known: readonly string[], unproven: readonly string[], claims: readonly Claim[]): string[] {
  const claimed = new Map(claims.map(({ id, where }) => [id, where]));
  return [
    ...twice(known).map((id) => `${id} is in the table twice.`),
    ...twice(unproven).map((id) => `${id} is in unproven twice.`),
    ...claims.filter(({ id }) => !known.includes(id)).map(({ id, where }) => `${where} claims to prove ${id}, which is not in the table.`),
    ...unproven.filter((id) => !known.includes(id)).map((id) => `unproven lists ${id}, which is not in the table.`),
    ...unproven.filter((id) => claimed.has(id)).map((id) => `${id} is proven at ${claimed.get(id)}: take it out of unproven.`),
    ...known.filter((id) => !claimed.has(id) && !unproven.includes(id)).map((id) => `${id} has no test, and unproven does not list it.`),
  ];
}

const twice = (ids: readonly string[]) => ids.filter((id, at) => ids.indexOf(id) !== at);

interface Title {
  readonly text: string;
  readonly at: number;
}

/** A node of the syntax tree, as far as it is looked at. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

/** Titles of the tests below a node that would run. */
function titlesOf(node: Node): Title[] {
  const call = node.type === 'CallExpression' ? testCall(node) : undefined;
  if (call?.idle) return [];
  const own = call?.title ? [{ text: textOf(call.title), at: call.title.start }] : [];
  return [...own, ...childrenOf(node).flatMap(titlesOf)];
}

const idle = new Set(['skip', 'todo', 'fails']);

/** Is this `test(…)`, `test.each(…)(…)`, `describe.skip(…)`? `idle`: it proves nothing, nor does anything inside. */
function testCall(node: Node): { idle: boolean; title?: Node } | undefined {
  const { root, words } = spelled(node.callee as Node);
  const single = root === 'test' || root === 'it';
  if (!single && root !== 'describe') return undefined;
  const [title, ...rest] = node.arguments as Node[];
  if (words.some((word) => idle.has(word)) || rest.some(switchesOff)) return { idle: true };
  const runs = rest.some(({ type }) => type !== 'ObjectExpression'); // a test without a body is one that is still to be written
  return single && title && runs ? { idle: false, title } : { idle: false };
}

/** `test.each(rows).skip` is the root `test` and the words `each`, `skip`. */
function spelled(callee: Node): { root?: string; words: string[] } {
  switch (callee.type) {
    case 'Identifier':
      return { root: callee.name as string, words: [] };
    case 'MemberExpression': {
      const { name } = callee.property as Node;
      const { words, ...inner } = spelled(callee.object as Node);
      return { ...inner, words: [...words, String(name)] };
    }
    case 'CallExpression':
      return spelled(callee.callee as Node);
    case 'TaggedTemplateExpression':
      return spelled(callee.tag as Node);
    default:
      return { words: [] };
  }
}

/** `{ skip: true }` as options. */
function switchesOff(options: Node): boolean {
  if (options.type !== 'ObjectExpression') return false;
  return (options.properties as Node[]).some(({ key, value }) => idle.has(String((key as Node | undefined)?.name)) && (value as Node).value !== false);
}

/** All that is written out in a title: strings, joined strings, the fixed parts of templates. */
function textOf(node: Node): string {
  if (node.type === 'Literal') return String(node.value);
  if (node.type === 'TemplateElement') return (node.value as { cooked: string }).cooked;
  return childrenOf(node).map(textOf).join(' ');
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((one): one is Node => typeof (one as Node | null)?.type === 'string');
}

/** A Python check claims in the first string of a call of `check`. Comments and other strings are stepped over. */
function pythonTitles(source: string): Title[] {
  const text = `"""[^]*?"""|'''[^]*?'''|"(?:\\\\.|[^"\\\\\\n])*"|'(?:\\\\.|[^'\\\\\\n])*'`;
  const tokens = new RegExp(`#[^\\n]*|\\bcheck\\(\\s*[a-zA-Z]?(${text})|${text}`, 'g');
  return [...source.matchAll(tokens)].flatMap((found) => (found[1] === undefined ? [] : [{ text: found[1], at: found.index }]));
}
