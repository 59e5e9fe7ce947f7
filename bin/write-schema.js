// node bin/run.js bin/write-schema.js: makes dragoman.schema.json, which editors complete dragoman.yaml with, from the settings.
import { writeFileSync } from 'node:fs';
import { settingsSchema } from '#config/index';
import { providerModules } from '#providers/modules';

writeFileSync(new URL('../dragoman.schema.json', import.meta.url), `${JSON.stringify(settingsSchema(providerModules), null, 2)}\n`);
