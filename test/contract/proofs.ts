/**
 * What the tests claim to prove: the ids in the titles of tests that run, as in `test(proves('chat.401', 'a wrong key is 401'), …)`.
 * Read from the source, so nothing has to run; skipped and unwritten tests claim nothing.
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
export function claimsOf(root: string): Claim[] {
  return globSync(['src/**/*.test.ts', 'test/**/*.test.ts', 'test/**/*.py'], { cwd: root })
    .toSorted()
    .flatMap((path) => claimsIn(path, readFileSync(join(root, path), 'utf8')));
}

/** The claims of one file. */
export function claimsIn(path: string, source: string): Claim[] {
  // oxlint-disable-next-line typescript/no-deprecated -- its successor comes with vite, which is vitest's dependency and not ours
  const proofs = path.endsWith('.py') ? pythonProofs(source) : proofsOf(parseAst(source, { lang: 'ts' }) as unknown as Node);
  return proofs.map(({ id, at }) => ({ id, where: `${path}:${source.slice(0, at).split('\n').length}` }));
}

/** The group of an id: the area of a promise, the chapter of a row. */
const groupOf = (id: string): string => /^[A-Za-z]+/.exec(id)![0];

/** Ids that no claim proves, by group. */
export function unprovenOf(known: readonly string[], claims: readonly Claim[]): Readonly<Record<string, readonly string[]>> {
  const claimed = new Set(claims.map(({ id }) => id));
  return Object.fromEntries(
    Map.groupBy(
      known.filter((id) => !claimed.has(id)),
      groupOf,
    ),
  );
}

/**
 * What is wrong between a table of ids and the claims; empty when all is well.
 *
 * @param most how many ids of a group may be without a proof
 */
export function disagreements(known: readonly string[], most: Readonly<Record<string, number>>, claims: readonly Claim[]): string[] {
  const unproven = unprovenOf(known, claims);
  return [
    ...known.filter((id, at) => known.indexOf(id) !== at).map((id) => `${id} is in the table twice.`),
    ...Object.entries(most).flatMap(([group, allowed]) => {
      const ids = unproven[group] ?? [];
      if (ids.length > allowed) return [`${group}: ${ids.length} have no proof, ${allowed} may: ${ids.join(', ')}.`];
      return ids.length < allowed ? [`${group}: ${ids.length} have no proof: lower its number from ${allowed}.`] : [];
    }),
  ];
}

/** Claims of ids that are in no table. Types find them in TypeScript; this finds them in Python too. */
export function unknownClaims(known: readonly string[], claims: readonly Claim[]): string[] {
  return claims.filter(({ id }) => !known.includes(id)).map(({ id, where }) => `${where} claims to prove ${id}, which is in no table.`);
}

interface Proof {
  readonly id: string;
  readonly at: number;
}

/** A node of the syntax tree, as far as it is looked at. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

/** What the tests below a node that would run claim to prove. */
function proofsOf(node: Node): Proof[] {
  const call = node.type === 'CallExpression' ? testCall(node) : undefined;
  if (call?.idle) return [];
  const own = call?.title ? provenBy(call.title) : [];
  return [...own, ...childrenOf(node).flatMap(proofsOf)];
}

/** The ids of a title `proves('id', …)` or `proves(['id', 'id'], …)`. */
function provenBy(title: Node): Proof[] {
  if (title.type !== 'CallExpression' || (title.callee as Node).name !== 'proves') return [];
  const [ids] = title.arguments as Node[];
  const literals = ids?.type === 'ArrayExpression' ? (ids.elements as Node[]) : [ids!];
  return literals.map(({ value, start }) => ({ id: String(value), at: start }));
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

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((one): one is Node => typeof (one as Node | null)?.type === 'string');
}

/** A Python check claims by ids in brackets in the first string of a call of `check`. Comments and other strings are stepped over. */
function pythonProofs(source: string): Proof[] {
  const text = `"""[^]*?"""|'''[^]*?'''|"(?:\\\\.|[^"\\\\\\n])*"|'(?:\\\\.|[^'\\\\\\n])*'`;
  const tokens = new RegExp(`#[^\\n]*|\\bcheck\\(\\s*[a-zA-Z]?(${text})|${text}`, 'g');
  return [...source.matchAll(tokens)].flatMap((found) =>
    [...(found[1] ?? '').matchAll(/\[([A-Z]-\d\d|[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+)\]/g)].map(([, id]) => ({ id: id!, at: found.index })),
  );
}
