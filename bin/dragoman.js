#!/usr/bin/env node
// Starts Dragoman on Node 26, whichever Node runs this file. Plain JavaScript for Node 18 and newer.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { become, isNew, launch, memoryOptions, newNode, refuseIncomplete, refuseWindows } from './runtime.js';

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const built = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const args = process.argv.slice(2);

// Half of these threads may look up host names: two of the default four are too few when a name server is slow.
process.env.UV_THREADPOOL_SIZE ??= '16';

/** A server that is stopped before it has begun has nothing to finish. */
const serves = /^(-|serve$|work$|$)/.test(args[0] ?? '');

refuseWindows();
const node = newNode();
refuseIncomplete([source, built]);
if (existsSync(source)) {
  const { isCurrent } = await import('./stamp.js'); // not in the package
  launch(node, [...memoryOptions, ...(isCurrent() ? [built] : ['--conditions=dragoman-source', source]), ...args], { serves });
} else if (isNew) {
  await become(memoryOptions, built, args);
} else {
  launch(node, [...memoryOptions, built, ...args], { serves });
}
