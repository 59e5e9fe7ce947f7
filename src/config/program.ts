import { existsSync } from 'node:fs';

/** What people type to run this program: from a clone of the source, or as the installed package. */
export const program = existsSync(new URL('../../src/main.ts', import.meta.url)) ? 'node bin/dragoman.js' : 'dragoman';
