import type { ForeignTool, Namespace, Tool } from '#core/conversation';

/**
 * The tools of a request and those that items of its conversation declare, for other wires refuse a name that is there twice: the last declaration of a name
 * holds, and those of the request itself are the last. The tools of namespaces have both names.
 */
export function declaredTools(tools: readonly Tool[], inItems: readonly Tool[]): readonly Tool[] {
  if (inItems.length === 0) return tools;
  const seen = new Set(tools.flatMap(keysOf));
  const last = inItems.toReversed().flatMap((tool): readonly Tool[] => {
    if (tool.type === 'foreign' && tool.namespace) return namespaceLeft(tool, tool.namespace, seen);
    return keysOf(tool).every((key) => isNew(seen, key)) ? [tool] : [];
  });
  return [...tools, ...last.toReversed()];
}

function namespaceLeft(tool: ForeignTool, { tools, ...namespace }: Namespace, seen: Set<string>): readonly Tool[] {
  const left = tools.toReversed().filter((one) => isNew(seen, keyOf(namespace.name, one.name)));
  return left.length === 0 ? [] : [left.length === tools.length ? tool : { ...tool, namespace: { ...namespace, tools: left.toReversed() } }];
}

function keysOf(tool: Tool): readonly string[] {
  if (tool.type !== 'foreign') return [keyOf(tool.name)];
  if (tool.namespace) return tool.namespace.tools.map(({ name }) => keyOf(tool.namespace!.name, name));
  return tool.search ? ['search'] : [];
}

const keyOf = (...names: readonly string[]): string => JSON.stringify(names);

function isNew(seen: Set<string>, key: string): boolean {
  const before = seen.size;
  return seen.add(key).size > before;
}
