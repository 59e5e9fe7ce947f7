import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fieldOf, type Path } from './path.ts';
import type { Settings } from './schema/index.ts';

/**
 * Sentences about files that are read, and programs that are started, only when they are needed, and are not there. The rest of the server works without them,
 * so that the start says it and goes on.
 */
export function missingFiles({ providers, googleCredentials, mcp }: Settings): readonly string[] {
  const keyFiles = Object.entries(providers).flatMap(([name, { credentials }]): readonly (readonly [string, string])[] => {
    const file = credentials?.serviceAccountFile;
    if (file === undefined) return [];
    const path: Path = ['providers', name, 'credentials', 'serviceAccountFile'];
    return [[file, file === googleCredentials ? 'GOOGLE_APPLICATION_CREDENTIALS' : fieldOf(path)]];
  });
  return [
    ...Array.from(new Map(keyFiles), ([file, field]) => said(field, 'a file that can be read', whyNot(file, constants.R_OK))),
    ...mcp.stdio.map(({ command }, at) =>
      said(fieldOf(['mcp', 'stdio', at, 'command']), 'a program that can be started', isAbsolute(command) ? whyNot(command, constants.X_OK) : undefined),
    ),
  ].filter((text) => text !== '');
}

const said = (field: string, what: string, why: string | undefined): string => (why === undefined ? '' : `${field} must name ${what}: ${why}.`);

function whyNot(file: string, mode: number): string | undefined {
  try {
    accessSync(file, mode);
    return statSync(file).isDirectory() ? 'it is a folder' : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'there is none' : String(code);
  }
}
