import { writeFileSync } from 'node:fs';
import { settingsSchema } from './json-schema.ts';

// A program of its own: writes the schema that ships in the package.
writeFileSync(new URL('../../dragoman.schema.json', import.meta.url), `${JSON.stringify(settingsSchema(), null, 2)}\n`);
