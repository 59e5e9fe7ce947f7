// node bin/run.js bin/write-schema.js: makes dragoman.schema.json, which editors complete dragoman.yaml with, from the settings.
import { writeFileSync } from 'node:fs';
import { settingsSchema } from '#config/index';

writeFileSync(new URL('../dragoman.schema.json', import.meta.url), `${JSON.stringify(settingsSchema(), null, 2)}\n`);
