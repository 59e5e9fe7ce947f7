// node bin/run.js bin/write-schema.js: generates dragoman.schema.json, with which editors complete dragoman.yaml.
import { writeFileSync } from 'node:fs';
import { settingsSchema } from '#config/index';

writeFileSync(new URL('../dragoman.schema.json', import.meta.url), `${JSON.stringify(settingsSchema(), null, 2)}\n`);
