/** Writes the examples of `/docs` and the OpenAPI document, by asking a server: `npm run examples`. */
import { writeFileSync } from 'node:fs';
import { startTestServer } from '../support/server.ts';
import { madeExamples } from './examples.ts';
import { settings } from './requests.ts';

const server = await startTestServer(settings);
const made = await madeExamples(server);
await server.close();
writeFileSync(new URL('../../src/faces/monitoring/examples.json', import.meta.url), `${JSON.stringify(made, null, 2)}\n`);
