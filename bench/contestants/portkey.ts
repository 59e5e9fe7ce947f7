/** Portkey's gateway, installed outside the project by `../portkey.sh`. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { openNode, type Entrant } from './contestant.ts';

const folder = process.env['DRAGOMAN_BENCH_PORTKEY'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'dragoman-bench/portkey');
const file = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');

export const portkey: Entrant = {
  missing: () => (existsSync(file) ? undefined : 'Portkey is not installed (npm run bench -- --portkey installs it outside the project).'),
  open: (place) =>
    openNode(
      'portkey',
      {
        file,
        words: (port) => ['--headless', `--port=${port}`],
        headers: ['Authorization: Bearer upstream-secret', 'x-portkey-provider: openai', `x-portkey-custom-host: http://127.0.0.1:${place.upstreamPort}/v1`],
      },
      place,
    ),
};
