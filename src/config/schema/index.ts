import { logLevels } from '#core/log-levels';
import type { ProviderKind } from '#core/provider-kind';
import { Type, type Static } from 'typebox';
import { bodies, auth, cache, compat, cors, guard, responses, retention } from './rules.ts';
import { limits, routing } from './limits.ts';
import { defaults, models } from './models.ts';
import { alerts, blobs, mcp, otel, outbound, rerank, search } from './outside.ts';
import { charge, newUsers, plans } from './plans.ts';
import { providers } from './providers.ts';
import { list, oneOf, text, word } from './shapes.ts';

/** Every setting of the file, in the order of the file. A member with a `default` may be left out of it and is always there in `Settings`. */
export const fileSettings = (kinds: readonly ProviderKind[]) =>
  Type.Object(
    {
      host: word('Address to listen on.', { default: '127.0.0.1' }),
      port: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port to listen on; 0 chooses a free one.', default: 8080 }),
      data: word('Data folder, for the embedded database, the journal and blobs. A relative path starts at the folder of the settings file.', {
        default: './data',
      }),
      databaseUrl: Type.Optional(
        word('Address of a PostgreSQL 15 or newer (postgres://…), used instead of the embedded database.', { examples: ['${DATABASE_URL}'] }),
      ),
      workers: Type.Integer({ minimum: 1, maximum: 1024, description: 'Number of processes on this machine; more than 1 needs databaseUrl.', default: 1 }),
      logLevel: oneOf('Least severe level that is logged.', logLevels, { default: 'info' }),
      publicUrl: text('The address that clients see, as /openapi.json gives it. Empty: made from host and port.'),
      trustedProxies: list('Addresses or networks that may say X-Forwarded-*.', word('An address, or a network as 10.0.0.0/8.')),
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
      description: 'Settings of Dragoman. `${NAME}` in a text is the environment variable NAME; `$${` is `${` itself.',
    },
  );

/** With what the environment alone may say. */
export const allSettings = (kinds: readonly ProviderKind[]) =>
  Type.Object(
    {
      ...fileSettings(kinds).properties,
      masterKey: Type.Optional(word('32 bytes in base64: seals secrets and provider keys at rest; absent: made in the data folder.')),
      googleCredentials: Type.Optional(word('Key file that providers of kind vertex without credentials sign in with.')),
      adminEmail: Type.Optional(word('E-mail address of the first user.')),
      adminApiKey: Type.Optional(word('API key of the first user: 64 characters of [A-Za-z0-9_-].')),
    },
    { additionalProperties: false },
  );

/** Read once at the boundary, trusted behind it. Whatever is kept by name (`providers`, `models`, `plans`…) has no prototype: only own names are found in it. */
export type Settings = Fixed<Settled>;

type Settled = Omit<Static<ReturnType<typeof allSettings>>, 'defaults' | 'newUsers'> & {
  defaults: Required<Static<typeof defaults>>;
  newUsers: Required<Static<typeof newUsers>>;
};

type Fixed<Value> = Value extends object ? { readonly [Key in keyof Value]: Fixed<Value[Key]> } : Value;

export type ProviderSettings = Settings['providers'][string];
export type ModelSettings = Settings['models'][string];

/** Settings that a running server cannot take over. */
export const restartSettings = ['host', 'port', 'data', 'databaseUrl', 'workers', 'outbound'] as const satisfies readonly (keyof Settings)[];
