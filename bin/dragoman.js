#!/usr/bin/env node
// Starts Dragoman on Node 26, whatever Node this is. Plain JavaScript that Node 18 reads: here nothing newer may be assumed.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { compileCache, isNew, launch, newNode, refuseWindows } from './runtime.js';

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const built = new URL('../dist/main.js', import.meta.url);
const wishes = process.argv.slice(2);
// What lives as long as a request is then gone before it is moved to the old generation: a third less CPU a request, measured.
const memory = ['--max-semi-space-size=32'];

// Half of these threads may look up host names: two of the usual four are too few where a name server is slow.
process.env.UV_THREADPOOL_SIZE ??= '16';

refuseWindows();
if (existsSync(source)) {
  launch(newNode(), [...memory, '--conditions=source', source, ...wishes]);
} else if (isNew) {
  const folder = compileCache();
  if (folder) module.enableCompileCache(folder); // caches only what is imported after it, hence the import as a call
  await import(built.href);
} else {
  launch(newNode(), [...memory, fileURLToPath(built), ...wishes]);
}
