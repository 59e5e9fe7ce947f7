import { logLevels } from '#core/log-levels';
import type { ProviderKind } from '#core/provider-kind';
import { Type, type Static } from 'typebox';
import { bodies, auth, cache, compat, cors, guard, responses, retention } from './rules.ts';
import { limits, routing } from './limits.ts';
import { defaults, models } from './models.ts';
import { alerts, blobs, mcp, otel, outbound, rerank, retrieval, search, sources } from './outside.ts';
import { charge, newUsers, plans } from './plans.ts';
import { providers } from './providers.ts';
import { list, oneOf, text, word } from './shapes.ts';

/** Every setting of the file, in file order. A member with a `default` is optional in the file and always present in `Settings`. */
export const fileSettings = (kinds: readonly ProviderKind[]) =>
  Type.Object(
    {
      host: word('Address to listen on.', { default: '127.0.0.1' }),
      port: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port to listen on; 0 picks a free port.', default: 8080 }),
      data: word('Data folder for the embedded database, the journal and blobs. A relative path is resolved against the folder of the settings file.', {
        default: './data',
      }),
      databaseUrl: Type.Optional(
        word('URL of a PostgreSQL server (postgres://…), version 15 or newer, used instead of the embedded database.', { examples: ['${DATABASE_URL}'] }),
      ),
      workers: Type.Integer({ minimum: 1, maximum: 1024, description: 'Number of processes on this machine; more than 1 requires databaseUrl.', default: 1 }),
      logLevel: oneOf('Lowest severity that is logged.', logLevels, { default: 'info' }),
      logFormat: oneOf(
        'Form of the log: `pretty` for people, with colours; `auto`: pretty where stderr is a terminal, otherwise JSON.',
        ['auto', 'json', 'pretty'],
        {
          default: 'auto',
        },
      ),
      publicUrl: text(
        'Public URL of this server: published in /openapi.json, issuer and audience of access tokens, which end when it changes, and where browsers come back to from sign-ins at MCP servers. With https, cookies of sessions are for https alone. Empty: for /openapi.json the address that it is asked for by, otherwise derived from host and port.',
      ),
      trustedProxies: list('Addresses or networks whose X-Forwarded-* headers are trusted.', word('An IP address, or a network such as 10.0.0.0/8.')),
      providers: providers(kinds),
      models,
      defaults,
      plans,
      newUsers,
      charge,
      limits,
      routing,
      responses,
      bodies,
      retention,
      cache,
      guard,
      search,
      rerank,
      retrieval,
      sources,
      mcp,
      outbound,
      auth,
      cors,
      compat,
      alerts,
      blobs,
      otel,
    },
    {
      additionalProperties: false,
      title: 'dragoman.yaml',
      description: 'Settings of Dragoman. `${NAME}` in a string is replaced by the environment variable NAME; `$${` is a literal `${`.',
    },
  );

/** The settings of the file and those that only the environment may set. */
export const allSettings = (kinds: readonly ProviderKind[]) =>
  Type.Object(
    {
      ...fileSettings(kinds).properties,
      masterKey: Type.Optional(word('Key that encrypts secrets and provider keys at rest: 32 bytes in base64; absent: generated in the data folder.')),
      googleCredentials: Type.Optional(word('Key file for providers of kind vertex that have no credentials of their own.')),
      adminEmail: Type.Optional(word('E-mail address of the first user.')),
      adminApiKey: Type.Optional(word('API key of the first user: 64 characters of [A-Za-z0-9_-].')),
    },
    { additionalProperties: false },
  );

/** Settings, validated once at the boundary and trusted behind it. Maps by name (`providers`, `models`, `plans`…) have no prototype: a lookup finds own names only. */
export type Settings = Fixed<Settled>;

type Defaults = Static<typeof defaults>;

type Settled = Omit<Static<ReturnType<typeof allSettings>>, 'defaults' | 'newUsers'> & {
  /** Without `embedding`, no model stands in for an unknown embedding model. */
  defaults: Required<Omit<Defaults, 'embedding'>> & Pick<Defaults, 'embedding'>;
  newUsers: Required<Static<typeof newUsers>>;
  /** Clients cannot request the built-in models by name; `{ provider: built-in }` remains a target. */
  hidesBuiltIn: boolean;
  /** The provider from the environment that answers every other name: the lists of models show what it offers. */
  offeredBy?: string;
  /** Where `offeredBy` is set: how the names of vendors' models begin, and the provider that they go to before it. */
  ownNames?: Record<string, string>;
};

type Fixed<Value> = Value extends object ? { readonly [Key in keyof Value]: Fixed<Value[Key]> } : Value;

export type ProviderSettings = Settings['providers'][string];
export type ModelSettings = Settings['models'][string];

/** Settings that take effect only after a restart. */
export const restartSettings = [
  'host',
  'port',
  'data',
  'databaseUrl',
  'workers',
  'outbound',
  'blobs',
  'logFormat',
] as const satisfies readonly (keyof Settings)[];
