import type { SchemaLimits } from '../shared/adapted-schema.ts';

/** What JSON Schemas of answers and of strict tools may say. https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations */
const keywords: ReadonlySet<string> = new Set(
  '$schema $ref $defs definitions type enum const anyOf allOf properties required items additionalProperties title description default'.split(' '),
);
const formats: ReadonlySet<string> = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']);

/** JSON values in the schemas of one request. */
const mostValues = 20_000;

/** @returns limits for the schemas of one request */
export const schemaLimits = (): SchemaLimits => ({ keywords, formats, minItems: 1, left: mostValues });
