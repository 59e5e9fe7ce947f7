// node bin/run.js bin/write-schema.js: generates dragoman.schema.json, with which editors complete dragoman.yaml.
import { writeFileSync } from 'node:fs';
import { settingsSchema } from '#config/index';
import { providerModules } from '#providers/modules';

writeFileSync(new URL('../dragoman.schema.json', import.meta.url), `${JSON.stringify(settingsSchema(providerModules), null, 2)}\n`);
