import type { ProviderKind } from '#core/provider-kind';
import { formsFor } from './shape.ts';

/** The JSON Schema of the settings file, for editors. A test holds `dragoman.schema.json` against it. */
export function settingsSchema(kinds: readonly ProviderKind[]): object {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...formsFor(kinds).file };
}
