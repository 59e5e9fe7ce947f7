import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Path } from '../path.ts';
import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

/** Files that are read, and programs that are started, only when they are needed: without them calls would fail one by one. */
export function* files({ providers, googleCredentials, mcp }: Settings): Iterable<Trouble> {
  const ofProviders = Object.entries(providers).flatMap(([name, { credentials }]): readonly (readonly [Path, string])[] => {
    const file = credentials?.serviceAccountFile;
    if (file === undefined) return [];
    return [[file === googleCredentials ? ['googleCredentials'] : ['providers', name, 'credentials', 'serviceAccountFile'], file]];
  });
  for (const [path, file] of new Map(ofProviders.map((one) => [one[1], one])).values()) {
    const why = whyNot(file, constants.R_OK);
    if (why !== undefined) yield { path, text: `must be a file that can be read: ${why}.` };
  }
  for (const [at, { command }] of mcp.stdio.entries()) {
    const why = isAbsolute(command) ? whyNot(command, constants.X_OK) : undefined;
    if (why !== undefined) yield { path: ['mcp', 'stdio', at, 'command'], text: `must be a program that can be started: ${why}.` };
  }
}

function whyNot(file: string, mode: number): string | undefined {
  try {
    accessSync(file, mode);
    return statSync(file).isDirectory() ? 'it is a folder' : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'there is none' : String(code);
  }
}
