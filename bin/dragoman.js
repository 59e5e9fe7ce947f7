#!/usr/bin/env node
// Starts Dragoman on Node 26, whichever Node runs this file. Plain JavaScript for Node 18 and newer.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { compileCache, isNew, launch, newNode, refuseWindows } from './runtime.js';

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const built = new URL('../dist/main.js', import.meta.url);
const args = process.argv.slice(2);
// Objects that live as long as a request are then collected before they are moved to the old generation: measured, a third less CPU time per request.
// One thread of V8's own, in place of four: on a core that is shared, a collection holds up an answer for 4 ms and not for 16.
const memory = ['--max-semi-space-size=32', '--v8-pool-size=1'];

// Half of these threads may look up host names: two of the default four are too few when a name server is slow.
process.env.UV_THREADPOOL_SIZE ??= '16';

refuseWindows();
if (existsSync(source)) {
  const { isCurrent } = await import('./stamp.js'); // not in the package
  launch(newNode(), [...memory, ...(isCurrent() ? [fileURLToPath(built)] : ['--conditions=dragoman-source', source]), ...args]);
} else if (isNew) {
  const folder = compileCache();
  if (folder) module.enableCompileCache(folder); // applies only to later imports, hence the dynamic import
  await import(built.href);
} else {
  launch(newNode(), [...memory, fileURLToPath(built), ...args]);
}
