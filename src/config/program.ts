import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const isClone = existsSync(new URL('../../src/main.ts', import.meta.url));

/** What people type to run this program: from a clone of the source, or as the installed package. */
export const program = isClone ? 'node bin/dragoman.js' : 'dragoman';

/** Where a page of the docs is: in a clone, or in the folder of the installed package. */
export const docsPage = (name: string): string => (isClone ? `docs/${name}` : fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)));
