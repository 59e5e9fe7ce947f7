// After `npm ci`: builds dist/ where the tools for that are installed. It never fails, since the sources can be run as they are. Plain JavaScript for Node 18 and newer.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

if (existsSync(at('node_modules/rolldown')) && existsSync(at('src'))) {
  const { status } = spawnSync(process.execPath, [at('bin/run.js'), at('bin/build.js'), '--unless-current'], { stdio: 'ignore' });
  if (status !== 0) console.log('dist/ was not built: Dragoman runs from its sources. "npm run build" says why.');
}
