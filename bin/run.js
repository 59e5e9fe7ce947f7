// node bin/run.js TOOL [ARGUMENT…]: runs a development tool, or a script of ours, on Node 26. npm's own `node` may be older.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { launch, newNode, refuseWindows } from './runtime.js';

const [tool, ...wishes] = process.argv.slice(2);
const script = /\.[jt]s$/.test(tool) ? tool : fileURLToPath(new URL(`../node_modules/.bin/${tool}`, import.meta.url));

refuseWindows();
if (!existsSync(script)) {
  console.error(`${tool} is not installed: run "npm ci" with the development packages.`);
  process.exit(1);
}
launch(newNode(), ['--conditions=source', script, ...wishes], { connected: false });
