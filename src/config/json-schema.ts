import { fileForm } from './shape.ts';

/** The JSON Schema of the settings file, for editors. A test holds `dragoman.schema.json` against it. */
export function settingsSchema(): object {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...fileForm };
}
