import { isAbsolute } from 'node:path';
import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

export function* mcp({ mcp: { whitelist, stdio } }: Settings): Iterable<Trouble> {
  const names = new Set<string>();
  for (const [member, servers] of Object.entries({ whitelist, stdio }))
    for (const [at, { name }] of servers.entries()) {
      if (names.has(name)) yield { path: ['mcp', member, at], silent: true, text: `has the same name as another server: ${name}.` };
      names.add(name);
    }
  for (const [at, { command }] of stdio.entries()) if (!isAbsolute(command)) yield { path: ['mcp', 'stdio', at, 'command'], text: 'must be an absolute path.' };
}
