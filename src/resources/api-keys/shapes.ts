import { Type, type Static } from 'typebox';
import { scopes, type Scope } from '#http/route';
import { closed, nullable, optionalOrNull, shownAs } from '#http/schemas';
import { lineField } from '../text-fields.ts';
import { changedLimits, optionalLimits } from '../plan-limits.ts';
import type { ApiKey } from '../api-key.ts';

const scopeNames = Type.Array(Type.Enum([...scopes]), { minItems: 1, maxItems: scopes.length, description: 'What it may be used for; absent: everything.' });

export const keyName = lineField(100);

const mcpTools = Type.Array(lineField(200, 'the name of a tool'), {
  minItems: 1,
  maxItems: 100,
  description:
    'Names of the only tools it may call over MCP, as /server/mcp lists them; absent: all. A key that has some sees no prompts there, and files only with `search` among them.',
});
const expiresAt = Type.String({ maxLength: 40, description: 'ISO 8601, in the future; absent: never.' });

export const KeyWanted = closed({
  ...optionalLimits,
  name: keyName,
  scopes: Type.Optional(scopeNames),
  expiresAt: Type.Optional(expiresAt),
  mcpTools: Type.Optional(mcpTools),
});
export type KeyWanted = Static<typeof KeyWanted>;

/** What narrows the key goes with null. */
export const KeyPatch = closed({
  ...changedLimits,
  name: Type.Optional(keyName),
  scopes: optionalOrNull(scopeNames),
  expiresAt: optionalOrNull(expiresAt),
  mcpTools: optionalOrNull(mcpTools),
});
export type KeyPatch = Static<typeof KeyPatch>;

export const MadeKey = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  key: Type.String({ description: 'In clear, this once.' }),
  scopes: nullable(scopeNames),
});

export const RotatedKey = Type.Object({ ...MadeKey.properties, oldUntil: Type.String({ description: 'Until then the text before is good too.' }) });

export const KeyObject = Type.Object({
  ...optionalLimits,
  id: Type.Integer(),
  name: Type.String(),
  shown: Type.String({ description: 'Its first and last characters.' }),
  scopes: nullable(scopeNames),
  models: nullable(Type.Array(Type.String())),
  mcpTools: nullable(Type.Array(Type.String())),
  createdAt: Type.String(),
  expiresAt: nullable(Type.String()),
  lastUsedAt: nullable(Type.String({ description: 'To within half a minute.' })),
});

export const shownKey = ({ limits, ...key }: ApiKey) => keyShown({ ...limits, ...key, scopes: key.scopes as readonly Scope[] | null });

const keyShown = shownAs(KeyObject);
