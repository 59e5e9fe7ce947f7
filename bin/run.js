// node bin/run.js TOOL [ARGUMENT…]: runs a development tool, or a script of this project, on Node 26. npm's own `node` may be older.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { launch, newNode, refuseWindows } from './runtime.js';

const [tool, ...args] = process.argv.slice(2);
const script = /\.[jt]s$/.test(tool) ? tool : fileURLToPath(new URL(`../node_modules/.bin/${tool}`, import.meta.url));

refuseWindows();
if (!existsSync(script)) {
  console.error(`${tool} is not installed: run "npm ci" without --omit=dev.`);
  process.exit(1);
}
launch(newNode(), ['--conditions=dragoman-source', script, ...args], { connected: false });
