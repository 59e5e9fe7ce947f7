import { createHash } from 'node:crypto';
import type { McpServer } from './store.ts';

/** Characters of a name that models see. */
const longestName = 64;
/** Of these the last ones, where the name is not enough. */
const digits = 8;

const written = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/g, '_');

type Named = Pick<McpServer, 'id' | 'name' | 'isFirstOfName'>;

/**
 * The name of a tool as models and clients see it: `<server>__<tool>`. It ends with digits of its own where that is too long, was written otherwise, could be read
 * in two ways, or is that of another server's. Which of several servers answer says nothing of it.
 */
export function nameOf({ id, name: server, isFirstOfName }: Named, tool: string): string {
  const plain = `${server}__${tool}`;
  const name = written(plain);
  const isPlain = isFirstOfName && name === plain && name.length <= longestName && !/__|_$/.test(server);
  return isPlain ? name : `${name.slice(0, longestName - digits - 1)}_${digitsOf(`${id}/${tool}`)}`;
}

const digitsOf = (what: string): string => createHash('sha256').update(what).digest('hex').slice(0, digits);

export function mayHaveNamed({ name: server }: Pick<McpServer, 'name'>, name: string): boolean {
  return name.startsWith(written(`${server}__`).slice(0, longestName - digits - 1));
}
