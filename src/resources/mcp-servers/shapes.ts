import { Type, type Static } from 'typebox';
import { closed, nullable, optionalOrNull, shownAs } from '#http/schemas';
import { valueIn } from '#kit/json/value-in';
import { multiline } from '../text-fields.ts';
import { permittedUrl, type McpPolicy } from './policy.ts';
import type { McpServer, ServerText } from './store.ts';
import { invalid } from '#core/fault';

const nameRule = {
  minLength: 1,
  maxLength: 100,
  pattern: '^(?=.*[^ ])[A-Za-z0-9 ._-]*$',
  expected: 'must have 1 to 100 letters, digits, spaces, hyphens, underscores and dots, not spaces alone',
} as const;
const url = Type.String({ minLength: 1, maxLength: 2048, description: 'An https address.' });

/** Headers that the protocol or the connection sets. */
const reserved =
  /^(host|content-length|content-type|accept|accept-encoding|transfer-encoding|connection|upgrade|te|trailer|keep-alive|last-event-id|expect|(proxy|mcp|sec)-.*)$/i;
const mostHeaders = 20;

export const ServerFields = closed({
  name: Type.String(nameRule),
  url,
  type: Type.Optional(Type.String({ maxLength: 50, ...multiline, description: 'A word of your own; how the server speaks is found out.' })),
  description: Type.Optional(Type.String({ maxLength: 1000, ...multiline })),
  metadata: Type.Optional(Type.Unknown({ description: 'Any JSON of your own, of at most 16 KB.' })),
  headers: Type.Optional(
    Type.Unsafe<Record<string, string>>(
      Type.Object({}, { additionalProperties: { type: 'string', maxLength: 8192, pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$', expected: 'must be a text without control characters' }, writeOnly: true, description: 'Sent with every request; may hold `{{secret.NAME}}`. Never given back; left out of a PUT: as they were, while the address is the same.' }), // prettier-ignore
    ),
  ),
  tools: optionalOrNull(Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 1000 }), {
    description: 'The only tools that may be called; null: all.',
  }),
  approval: optionalOrNull(Type.Enum(['first', 'always', 'never']), {
    description: 'Which calls its users are asked for. The stricter of this and the operator’s holds.',
  }),
});

export const nativeFields = {
  server_name: Type.String(nameRule),
  server_url: url,
  server_type: optionalOrNull(Type.String({ maxLength: 50, ...multiline })),
  description: optionalOrNull(Type.String({ maxLength: 1000, ...multiline })),
  metadata_json: optionalOrNull(Type.String({ maxLength: 16_384, ...multiline })),
};

/** @throws Fault `invalid` naming the field, `forbidden` for an address that the operator does not allow */
export function textOf(given: Static<typeof ServerFields>, policy: McpPolicy): ServerText {
  const { name, type = '', description = '', headers, tools = null, approval = null } = given;
  refuseStdio(type, 'type');
  const names = Object.keys(headers ?? {});
  if (names.length > mostHeaders) throw invalid('headers', `must have at most ${mostHeaders} members`);
  for (const one of names)
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(one) || reserved.test(one))
      throw invalid('headers', `must not have a member ${JSON.stringify(one.slice(0, 100))}`);
  const metadata = given.metadata === undefined || given.metadata === null ? null : JSON.stringify(given.metadata);
  if (metadata !== null && metadata.length > 16_384) throw invalid('metadata', 'must have at most 16 KB');
  return { name, url: permittedUrl(given.url, policy).href, type, description, metadata, headers, tools, approval };
}

/** @throws Fault `invalid` for a program: those are the operator's alone */
export function refuseStdio(type: string, field: string): void {
  if (type.trim().toLowerCase() === 'stdio') throw invalid(field, 'must not be stdio: programs are started only for the operator, from the settings');
}

export const ServerObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  url: Type.String({ description: 'Empty: a program of the operator’s.' }),
  type: Type.String(),
  description: Type.String(),
  metadata: Type.Unknown(),
  tools: nullable(Type.Array(Type.String())),
  approval: nullable(Type.Enum(['first', 'always', 'never'])),
  active: Type.Boolean(),
  state: Type.Enum(['ok', 'unreachable', 'refused', 'sign-in']),
  lastError: nullable(Type.String()),
  lastSeenAt: nullable(Type.String()),
  oauth: Type.Enum(['none', 'needed', 'connected', 'failed']),
  owner: nullable(Type.Integer(), { description: 'Null: the operator’s.' }),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], { description: 'What the caller may do with it.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const shown = (server: McpServer): Static<typeof ServerObject> => {
  const { signInError, metadata, lastError } = server;
  return serverShown({
    ...server,
    state: isUnasked(server) ? 'unreachable' : stateOf(server),
    lastError: isUnasked(server) ? unasked : (signInError ?? lastError),
    metadata: metadata === null ? null : jsonIn(metadata),
    oauth: oauthOf(server),
  });
};

const serverShown = shownAs(ServerObject);

/** How the server is for its reader, who may be signed in where others are not. */
export const stateOf = ({ state, signIn }: Pick<McpServer, 'state' | 'signIn'>) => (signIn === null || signIn === 'connected' ? state : 'sign-in');

/** Has it never been asked since it got its address? It may be good, or not. */
const isUnasked = (server: McpServer) => stateOf(server) === 'ok' && server.lastSeenAt === null && server.signIn === null;
const unasked = 'It has not been asked yet: test it, or use it.';

export const oauthOf = ({ signIn }: Pick<McpServer, 'signIn'>) => signIn ?? 'none';

/** What was written as JSON; what is none, as text. */
function jsonIn(text: string): unknown {
  const value = valueIn(text);
  return value === undefined ? text : value;
}
