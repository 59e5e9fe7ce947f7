import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { settingsOptions } from './index.ts';
import { complaint, folderWith, readFrom, readSettings } from '../../test/support/settings-folder.ts';

const provider = 'openai: { dialect: openai-chat, baseUrl: "https://a.example/v1" }';

describe('precedence', () => {
  test('without anything there are the defaults of the contract', () => {
    const cwd = folderWith();
    const { settings, file, path, sources } = readSettings({ cwd, env: {} });
    expect(file).toBeUndefined();
    expect(path).toBe(join(cwd, 'dragoman.yaml'));
    expect(settings).toEqual({
      host: '127.0.0.1',
      port: 8080,
      data: join(cwd, 'data'),
      workers: 1,
      logLevel: 'info',
      logFormat: 'auto',
      publicUrl: '',
      trustedProxies: [],
      providers: {},
      models: {},
      defaults: { chat: 'built-in', embedding: 'built-in-embedding', fallback: true, gencompat: 'built-in', speech: 'built-in-speech', followUp: 'built-in' },
      hidesBuiltIn: false,
      plans: {},
      newUsers: { plan: 'unlimited', signup: false, domains: [] },
      charge: { embeddings: 'inference' },
      limits: {
        bodyBytes: 33554432,
        maxConnections: 10000,
        fileBytes: 209715200,
        headerSeconds: 10,
        bodyIdleSeconds: 60,
        connectSeconds: 3,
        holdHeadersSeconds: 10,
        hangSeconds: { stream: 60, whole: 90 },
        firstByteSeconds: 300,
        streamIdleSeconds: 120,
        requestSeconds: 600,
        streamSeconds: 3600,
        agentSeconds: 1800,
        reserveOutput: 2048,
        minFreeBytes: 268435456,
        staleCredentialSeconds: 300,
      },
      routing: { cooldownSeconds: 1, cooldownMaxSeconds: 60, retryBudget: 0.2 },
      responses: { store: true, retentionDays: 30, maxRuns: 1000, maxBytes: 2 ** 30 },
      bodies: 'own',
      retention: { usageMonths: 13, bodiesDays: 30 },
      cache: {},
      guard: { checks: [] },
      search: { engine: 'searxng', url: '', apiKey: '' },
      rerank: { url: '', apiKey: '', model: '' },
      retrieval: { vectorCacheBytes: 268_435_456 },
      sources: { folders: [] },
      mcp: { mode: 'open', approval: 'first', whitelist: [], stdio: [] },
      outbound: { allow: [], proxy: '', noProxy: '', caFile: '' },
      auth: {
        keyInQuery: false,
        oidc: { issuer: '', clientId: '', clientSecret: '', scopes: ['openid', 'email', 'profile'], groupsClaim: '', adminGroups: [], teams: {}, plan: '' },
      },
      cors: { origins: [] },
      compat: { nativeErrors: 'http', vendorNames: true, leadingNewlines: false },
      alerts: { url: '', secret: '' },
      blobs: { s3: { endpoint: '', region: '', bucket: '', accessKeyId: '', secretAccessKey: '' } },
      otel: { endpoint: '' },
    });
    expect(new Set(Object.values(sources))).toEqual(new Set(['default']));
  });

  test.each([
    ['a default', undefined, {}, {}, 8080, 'default'],
    ['the file before a default', 'port: 1', {}, {}, 1, 'dragoman.yaml:1:1'],
    ['the environment before the file', 'port: 1', { PORT: '2' }, {}, 2, 'PORT'],
    ['the command line before the environment', 'port: 1', { PORT: '2' }, { port: '3' }, 3, '--port'],
    ['a variable that is empty is unset', 'port: 1', { PORT: '' }, {}, 1, 'dragoman.yaml:1:1'],
  ])('%s', (_, yaml, env, args, port, source) => {
    const { settings, sources } = readFrom(yaml, { env, args });
    expect(settings.port).toBe(port);
    expect(sources['port']).toBe(source);
  });

  test('every variable and option of the table arrives', () => {
    const cwd = folderWith();
    const key = 'A'.repeat(43) + '=';
    const { settings } = readSettings({
      cwd,
      env: {
        PORT: '0',
        HOST: '::1',
        DRAGOMAN_DATA: 'here',
        DATABASE_URL: 'postgres://me:secret@db/x',
        DRAGOMAN_WORKERS: '4',
        DRAGOMAN_MASTER_KEY: key,
        DRAGOMAN_ADMIN_EMAIL: 'a@b.c',
        DRAGOMAN_ADMIN_API_KEY: 'a_-9'.repeat(16),
        HTTPS_PROXY: 'http://me:secret@proxy:3128',
        NO_PROXY: 'localhost, .example.org',
      },
    });
    expect(settings).toMatchObject({
      port: 0,
      host: '::1',
      data: join(cwd, 'here'),
      databaseUrl: 'postgres://me:secret@db/x',
      workers: 4,
      masterKey: key,
      adminEmail: 'a@b.c',
      adminApiKey: 'a_-9'.repeat(16),
      outbound: { proxy: 'http://me:secret@proxy:3128', noProxy: 'localhost, .example.org', allow: [] },
    });
    const args = { port: '7', host: 'h', data: '/d', databaseUrl: 'postgresql://x', logLevel: 'debug', help: true };
    expect(readSettings({ cwd, env: {}, args }).settings).toMatchObject({ port: 7, host: 'h', data: '/d', databaseUrl: 'postgresql://x', logLevel: 'debug' });
    expect(settingsOptions.map(({ flags }) => flags.split(' ')[0])).toEqual([
      '--config',
      '--port',
      '--host',
      '--data',
      '--database-url',
      '--log-level',
      '--log-format',
    ]);
    for (const { description } of settingsOptions) expect(description).toMatch(/\w\.$/);
  });

  test('the environment says one member of a group, the file the others', () => {
    const yaml = 'outbound: { allow: ["http://127.0.0.1:3001"], proxy: "http://file:1" }';
    expect(readFrom(yaml, { env: { HTTPS_PROXY: 'http://env:1' } }).settings.outbound).toMatchObject({
      allow: ['http://127.0.0.1:3001'],
      proxy: 'http://env:1',
    });
  });

  test('the file is DRAGOMAN_CONFIG, and --config comes before it', () => {
    const cwd = folderWith('port: 1');
    writeFileSync(join(cwd, 'two.yaml'), 'port: 2');
    writeFileSync(join(cwd, 'three.yaml'), 'port: 3');
    const env = { DRAGOMAN_CONFIG: 'two.yaml' };
    expect(readSettings({ cwd, env })).toMatchObject({ settings: { port: 2 }, file: join(cwd, 'two.yaml') });
    expect(readSettings({ cwd, env, args: { config: join(cwd, 'three.yaml') } })).toMatchObject({ settings: { port: 3 }, sources: { port: 'three.yaml:1:1' } });
  });

  test('a relative path of the file starts at its folder, any other at the working folder', () => {
    const cwd = folderWith();
    mkdirSync(join(cwd, 'etc'));
    const yaml =
      'data: d\noutbound: { caFile: ca.pem }\nproviders: { v: { dialect: gemini, kind: vertex, project: p, regions: [r], baseUrl: "https://{region}.x/", credentials: { serviceAccountFile: k.json } } }';
    writeFileSync(join(cwd, 'etc/x.yaml'), yaml);
    writeFileSync(join(cwd, 'etc/ca.pem'), rootCertificates[0]!);
    const { settings } = readSettings({ cwd, env: { DRAGOMAN_CONFIG: 'etc/x.yaml' } });
    expect(settings).toMatchObject({ data: join(cwd, 'etc/d'), outbound: { caFile: join(cwd, 'etc/ca.pem') } });
    expect(settings.providers['v']).toMatchObject({ credentials: { serviceAccountFile: join(cwd, 'etc/k.json') }, baseUrl: 'https://{region}.x' });
    expect(readSettings({ cwd, env: { DRAGOMAN_CONFIG: 'etc/x.yaml', DRAGOMAN_DATA: 'd' } }).settings.data).toBe(join(cwd, 'd'));
  });

  test('a member without a value is left out', () => {
    expect(readFrom('models:\nlimits:\n  bodyBytes:\nport:').settings).toMatchObject({ port: 8080, models: {}, limits: { bodyBytes: 33554432 } });
  });

  test('what is kept by name has no other names in it', () => {
    const { models, providers, plans, cache } = readFrom(`providers: { ${provider} }\nmodels: { m: { targets: [{ provider: openai }] } }`).settings;
    for (const named of [models, providers, plans, cache, providers['openai']!.headers]) {
      expect(Object.getPrototypeOf(named)).toBeNull();
      expect(named['constructor']).toBeUndefined();
    }
  });
});

describe('${NAME}', () => {
  const read = (text: string, env: Record<string, string>) => readFrom(`publicUrl: ${text}`, { env }).settings.publicUrl;

  test.each([
    ['"${URL}"', 'https://a.example'],
    ['https://${HOST_NAME}:${PORT_TEXT}/x', 'https://b.example:1/x'],
    ["'${RECURSIVE}'", 'https://$HOME/${URL}'],
  ])('%s is what the environment says, which is not looked at again', (text, expected) => {
    const env = { URL: 'https://a.example', HOST_NAME: 'b.example', PORT_TEXT: '1', RECURSIVE: 'https://$HOME/${URL}' };
    expect(read(text, env)).toBe(expected);
  });

  test('$${ is ${ itself', () => {
    const yaml = 'guard: { checks: [{ name: a, kind: regex, pattern: "$${x}", action: deny }] }';
    expect(readFrom(yaml).settings.guard.checks[0]?.pattern).toBe('${x}');
  });
});

describe('providers of the environment', () => {
  const names = (yaml: string | undefined, env: Record<string, string>, ollama?: string) => {
    const { settings } = readFrom(yaml, { env, ollama });
    return { providers: Object.keys(settings.providers), other: settings.models['*']?.targets };
  };

  test.each([
    [{ OPENAI_API_KEY: 'k' }, undefined, ['openai'], 'openai'],
    [{ OPENAI_BASE_URL: 'http://x/v1' }, undefined, ['openai'], 'openai'],
    [{ ANTHROPIC_API_KEY: 'k' }, undefined, ['anthropic'], 'anthropic'],
    [{ GEMINI_API_KEY: 'k' }, undefined, ['gemini'], 'gemini'],
    [{ OLLAMA_HOST: 'box' }, undefined, ['ollama'], 'ollama'],
    [{}, 'http://127.0.0.1:11434', ['ollama'], 'ollama'],
    [{ OLLAMA_HOST: 'box', GEMINI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' }, undefined, ['anthropic', 'gemini', 'ollama'], 'anthropic'],
    [{ GEMINI_API_KEY: 'k', OPENAI_API_KEY: 'k' }, 'http://127.0.0.1:11434', ['openai', 'gemini', 'ollama'], 'openai'],
    [{ GEMINI_API_KEY: '' }, undefined, [], undefined],
  ])('%j with an Ollama at %s', (env, ollama, providers, other) => {
    expect(names(undefined, env, ollama)).toEqual({ providers, other: other && [{ provider: other }] });
  });

  test('have the addresses and keys of the variables', () => {
    const env = { OPENAI_API_KEY: 'k1', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1/', ANTHROPIC_API_KEY: 'k2', GEMINI_API_KEY: 'k3', OLLAMA_HOST: '0.0.0.0' };
    const { settings, sources } = readFrom(undefined, { env, ollama: 'http://127.0.0.1:11434' });
    expect(settings.providers).toMatchObject({
      openai: { dialect: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1', apiKeys: ['k1'] },
      anthropic: { dialect: 'anthropic-messages', baseUrl: 'https://api.anthropic.com', apiKeys: ['k2'] },
      gemini: { dialect: 'gemini', baseUrl: 'https://generativelanguage.googleapis.com/v1beta', apiKeys: ['k3'] },
      ollama: { dialect: 'openai-chat', baseUrl: 'http://127.0.0.1:11434/v1' },
    });
    expect(settings.providers['ollama']).not.toHaveProperty('apiKeys');
    expect(sources).toMatchObject({ 'providers.openai': 'OPENAI_API_KEY', 'providers.ollama': 'OLLAMA_HOST', 'models.*': 'OPENAI_API_KEY' });
  });

  test('one that the file names is as the file says', () => {
    const { settings, sources } = readFrom(`providers: { ${provider} }`, { env: { OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k' } });
    expect(Object.keys(settings.providers)).toEqual(['openai', 'gemini']);
    expect(settings.providers['openai']).toMatchObject({ baseUrl: 'https://a.example/v1' });
    expect(settings.providers['openai']).not.toHaveProperty('apiKeys');
    expect(sources['providers.openai']).toBe('dragoman.yaml:1:14');
    expect(settings.models['*']?.targets).toEqual([{ provider: 'openai' }]);
  });

  test('with a models section they bring no "*"', () => {
    const yaml = 'models: { m: { targets: [{ provider: openai }] } }';
    expect(names(yaml, { OPENAI_API_KEY: 'k' })).toEqual({ providers: ['openai'], other: undefined });
    expect(names('models: {}', { OPENAI_API_KEY: 'k' })).toEqual({ providers: ['openai'], other: undefined });
    expect(names('models:', { OPENAI_API_KEY: 'k' })).toEqual({ providers: ['openai'], other: [{ provider: 'openai' }] });
  });

  test('a provider of the file alone brings no "*"', () => {
    expect(names(`providers: { ${provider} }`, {})).toEqual({ providers: ['openai'], other: undefined });
  });
});

describe('defaults', () => {
  const builtIn = { chat: 'built-in', fallback: true, gencompat: 'built-in', speech: 'built-in-speech', followUp: 'built-in' };
  const models = `models:
  emb: { kind: embedding, targets: [{ provider: openai }] }
  built-in: { tokensPerSecond: 9 }
  "*": { targets: [{ provider: openai }] }
  first: { targets: [{ provider: openai }] }
  second: { targets: [{ provider: openai }] }`;

  test.each([
    ['with "*" alone', '', { OPENAI_API_KEY: 'k' }, builtIn],
    ['without providers', 'models: { m: { targets: [{ provider: built-in }] } }', {}, { ...builtIn, embedding: 'built-in-embedding' }],
    [
      'with hidden built-in models',
      'models: { built-in: false, m: { targets: [{ provider: built-in }] } }',
      {},
      { ...builtIn, chat: 'm', gencompat: 'm', followUp: 'm' },
    ],
    ['without fallback', 'defaults: { fallback: false }', {}, { ...builtIn, embedding: 'built-in-embedding', fallback: false }],
    [
      'with models',
      models,
      { OPENAI_API_KEY: 'k' },
      { chat: 'first', embedding: 'emb', fallback: true, gencompat: 'first', speech: 'built-in-speech', followUp: 'first' },
    ],
    [
      'as said',
      `${models}\ndefaults: { chat: second, gencompat: built-in }`,
      { OPENAI_API_KEY: 'k' },
      { chat: 'second', embedding: 'emb', fallback: true, gencompat: 'built-in', speech: 'built-in-speech', followUp: 'second' },
    ],
    [
      'a name that "*" takes',
      'defaults: { chat: any/name }',
      { OPENAI_API_KEY: 'k' },
      { ...builtIn, chat: 'any/name', gencompat: 'any/name', followUp: 'any/name' },
    ],
    [
      'an embedding known by name',
      'defaults: { embedding: text-embedding-3-large }',
      { OPENAI_API_KEY: 'k' },
      { ...builtIn, embedding: 'text-embedding-3-large' },
    ],
    [
      'an alias',
      `models: { m: { targets: [{ provider: openai }], aliases: [n] } }\ndefaults: { chat: n }`,
      { OPENAI_API_KEY: 'k' },
      { ...builtIn, chat: 'n', gencompat: 'n', followUp: 'n' },
    ],
  ])('%s', (_, yaml, env, expected) => {
    expect(readFrom(yaml, { env }).settings.defaults).toEqual(expected);
  });

  test('new users get the plan free where there is one', () => {
    expect(readFrom('plans: { free: { monthlyTokens: 0 } }').settings.newUsers.plan).toBe('free');
    expect(readFrom('plans: { team: {} }').settings.newUsers.plan).toBe('unlimited');
  });

  test('a built-in model is of its own kind', () => {
    expect(readFrom('models: { built-in-speech: { rate: { input: 2 } } }').settings.models['built-in-speech']).toMatchObject({
      kind: 'speech',
      rate: { input: 2, output: 1 },
    });
  });
});

describe('the file itself', () => {
  test.each([
    ['DRAGOMAN_CONFIG', { env: { DRAGOMAN_CONFIG: 'none.yaml' } }, 'DRAGOMAN_CONFIG: There is no file "none.yaml".'],
    ['--config', { args: { config: 'none.yaml' } }, '--config: There is no file "none.yaml".'],
    ['a folder', { env: { DRAGOMAN_CONFIG: '.' } }, 'This is a folder; a file was expected.'],
  ])('%s that names no file is refused', (_, origin, message) => {
    expect(complaint(() => readFrom(undefined, origin))).toContain(message);
  });

  test('a link that leads nowhere is refused', () => {
    const cwd = folderWith();
    symlinkSync('gone.yaml', join(cwd, 'dragoman.yaml'));
    expect(complaint(() => readSettings({ cwd, env: {} }))).toBe('dragoman.yaml: There is no such file.');
  });

  test('1 MiB is read, one byte more is refused', () => {
    const largest = 1024 * 1024;
    expect(readFrom(`port: 1\n#${'x'.repeat(largest - 9)}`).settings.port).toBe(1);
    expect(complaint(() => readFrom(`port: 1\n#${'x'.repeat(largest - 8)}`))).toBe('dragoman.yaml: This file is larger than 1 MiB.');
    expect(complaint(() => readSettings({ env: { DRAGOMAN_CONFIG: '/dev/zero' } }))).toBe('/dev/zero: This file is larger than 1 MiB.');
  });

  test('what is not UTF-8 is refused, a byte order mark is not', () => {
    expect(complaint(() => readFrom(Buffer.from([0x61, 0xff, 0x62])))).toBe('dragoman.yaml: This file is not text in UTF-8.');
    expect(readFrom('\ufeffport: 1').settings.port).toBe(1);
  });

  test('100,000 keys are looked through in a moment', () => {
    const yaml = Array.from({ length: 100_000 }, (_, at) => `k${at}: 1`).join('\n');
    expect(complaint(() => readFrom(yaml))).toContain('dragoman.yaml:1:1: k0 is not known.');
  });

  test.each(['[', '{a: ', '- ', '? '])('a mountain of %j is refused', (brick) => {
    expect(complaint(() => readFrom(brick.repeat(20_000)))).toMatch(/^dragoman.yaml:1:\d+: /);
  });
});
