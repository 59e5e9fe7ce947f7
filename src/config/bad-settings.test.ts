import { describe, expect, test } from 'vitest';
import { complaint, readFrom } from '../../test/support/settings-folder.ts';

const p = 'providers: { p: { dialect: openai-chat, baseUrl: "http://x/v1" } }';
const model = (inner: string) => `${p}\nmodels: { m: { targets: [{ provider: p }], ${inner} } }`;
const provider = (inner: string) => `providers:\n  p: { dialect: openai-chat, baseUrl: "http://x", ${inner} }`;
const vertex = (inner: string) => `providers:\n  v: { dialect: gemini, kind: vertex, baseUrl: "https://{region}.x", ${inner} }`;

/** Text of the file, with ▸ at each place that is complained of → the complaints. One that ends with a comma is only the beginning. */
type Row = readonly [yaml: string, ...complaints: string[]];

const tell = (yaml: string, env: Record<string, string> = {}) => complaint(() => readFrom(yaml.replaceAll('▸', ''), { env }))?.split('\n') ?? [];

const placesIn = (yaml: string) =>
  yaml.split('\n').flatMap((line, at) => [...line.matchAll(/▸/g)].map(({ index }, before) => `dragoman.yaml:${at + 1}:${index - before + 1}`));

describe('a file is refused', () => {
  const syntax: readonly Row[] = [
    ['a: [1, 2▸', 'The indentation is wrong, or a bracket is not closed.'],
    ['port: 1\nhost: "sk-secret▸', 'A closing quote or bracket, a comma, a space or a ":" is missing.'],
    ['limits:\n▸\tbodyBytes: 1', 'Tabs are not allowed as indentation; spaces were expected.'],
    ['host: ▸a: b', 'Two members cannot share a line; a text that contains ": " needs quotes.'],
    ['▸port 1\nhost: a', 'A name must be followed by ":" on the same line.'],
    ['host: ▸@x', 'A text that starts with this character needs quotes.'],
    ['host: "▸\\q"', 'This is not a valid \\ escape in double quotes; in single quotes, \\ is an ordinary character.'],
    ['---\nport: 1\n▸---\nport: 2', 'A second document starts here; one was expected.'],
    ['▸- port', 'The file must be members as `name: value`. Found a list.'],
    ['▸port', 'The file must be members as `name: value`. Found a text.'],
    ['port: 1\nhost: a\n▸port: 2', 'The file has the member port twice; the first one is on line 1.'],
    [`${p}\nmodels:\n  m: { targets: [{ provider: p }] }\n  ▸m: {}`, 'models has the member m twice; the first one is on line 3.'],
  ];
  const yamlTricks: readonly Row[] = [
    ['host: &a ▸x\npublicUrl: ▸*a', 'host has an anchor (&); write each value out.', 'publicUrl is an alias (*); write the value out.'],
    ['a: &a ▸[x, x]\nb: &b ▸[*a, *a]', 'a has an anchor (&); write each value out.', 'b has an anchor (&); write each value out.'],
    ['▸<<: { port: 1 }', '<< is not known. The file may have: host, port,'],
    ['host: ▸!!binary aGk=', 'A tag (!) was found; a plain value was expected.'],
    ['host: ▸!foo x', 'A tag (!) was found; a plain value was expected.'],
    ['host: !!str ▸x', 'host has a tag (!); a plain value was expected.'],
    ['? ▸[a]\n: 1', 'The file has a member whose name is not a plain word.'],
    ['plans: { ▸__proto__: { monthlyTokens: 1 } }', 'plans has a member with the reserved name __proto__.'],
    ['models: { ▸constructor: {} }', 'models has a member with the reserved name constructor.'],
    ['▸__proto__: { port: 1 }', 'The file has a member with the reserved name __proto__.'],
    ['plans: { ▸"${X}": {} }', 'plans has ${…} in the name of a member; it is allowed only in values.'],
    ['%YAML 1.1\n---\nauth: { keyInQuery: ▸yes }', 'auth.keyInQuery must be a boolean. Found "yes".'],
  ];
  const names: readonly Row[] = [
    ['▸prot: 1', 'prot is not known. Did you mean port?'],
    ['port: 1\n▸PROVIDERS: {}', 'PROVIDERS is not known. Did you mean providers?'],
    ['▸masterKey: abc', 'masterKey is not known. The file may have: host,'],
    ['limits:\n  hangSeconds: { ▸strem: 1 }', 'limits.hangSeconds.strem is not known. Did you mean stream?'],
    [
      'guard: { checks: [{ name: a, when: [before], kind: pii, action: mask, ▸find: [email] }] }',
      'guard.checks[0].find is not known. guard.checks[0] may have: name,',
    ],
    ['limits:\n  ▸nonsense: 1', 'limits.nonsense is not known. limits may have: bodyBytes,'],
    [provider('▸apikey: [sk-secret]'), 'providers.p.apikey is not known. Did you mean apiKeys?'],
    [
      vertex('project: p, regions: [▸{ name: a, ▸baseURL: "http://a" }]'),
      'providers.v.regions[0].baseUrl is required.',
      'providers.v.regions[0].baseURL is not known. Did you mean baseUrl?',
    ],
    [
      vertex('project: p, regions: [{ name: a, baseUrl: "http://a", ▸x: 1 }]'),
      'providers.v.regions[0].x is not known. providers.v.regions[0] may have: name, baseUrl.',
    ],
    [
      `${p}\nmodels:\n  gpt-5.2:\n    targets: [▸{ ▸provder: p, ▸junk: 1 }]`,
      'models.gpt-5.2.targets[0].provider is required.',
      'models.gpt-5.2.targets[0].provder is not known. Did you mean provider?',
      'models.gpt-5.2.targets[0].junk is not known. models.gpt-5.2.targets[0] may have: provider,',
    ],
    ['providers:\n  ▸p:\n    dialect: openai-chat', 'providers.p.baseUrl is required.'],
    ['providers:\n  p:\n    dialect: openai-chat\n    ▸baseUrl:', 'providers.p.baseUrl is required.'],
  ];
  const forms: readonly Row[] = [
    ['port: ▸abc', 'port must be an integer. Found "abc".'],
    ['port: ▸65536', 'port must be between 0 and 65535. Found 65536.'],
    ['port: ▸-1', 'port must be between 0 and 65535. Found -1.'],
    ['port: ▸1.5', 'port must be an integer. Found 1.5.'],
    ['host: ▸""', 'host must not be empty. Found "".'],
    ['workers: ▸0', 'workers must be between 1 and 1024. Found 0.'],
    ['bodies: ▸oww', 'bodies must be "own", "all" or "none". Found "oww".'],
    ['limits: { bodyBytes: ▸0 }', 'limits.bodyBytes must be between 1 and 536870912. Found 0.'],
    ['limits: { headerSeconds: ▸0 }', 'limits.headerSeconds must be more than 0. Found 0.'],
    ['limits: { headerSeconds: ▸.inf }', 'limits.headerSeconds must be a number. Found Infinity.'],
    ['limits: { headerSeconds: ▸1e9 }', 'limits.headerSeconds must be at most 2147483. Found 1000000000.'],
    ['routing: { retryBudget: ▸1.1 }', 'routing.retryBudget must be between 0 and 1. Found 1.1.'],
    ['limits: ▸7', 'limits must be an object. Found 7.'],
    ['trustedProxies: ▸10.0.0.0/8', 'trustedProxies must be an array. Found a text.'],
    ['providers: ▸sk-secret', 'providers must be an object. Found a text.'],
    ['providers: { p: ▸sk-secret }', 'providers.p must be an object. Found a text.'],
    ['providers: { p: ▸}', 'providers.p must be an object. Found nothing.'],
    [provider('apiKeys: ▸[]'), 'providers.p.apiKeys must not be empty. Found a list.'],
    [provider('apiKeys: [▸""]'), 'providers.p.apiKeys[0] must not be empty. What was found is not shown.'],
    [provider('apiKeys: ▸sk-secret'), 'providers.p.apiKeys must be an array. What was found is not shown.'],
    [model('▸targets2: 1'), 'models.m.targets2 is not known. Did you mean targets?'],
    [`${p}\nmodels: { m: { targets: [{ provider: p, weight: ▸0 }] } }`, 'models.m.targets[0].weight must be more than 0. Found 0.'],
    ['plans: { a: { monthlyTokens: ▸-1 } }', 'plans.a.monthlyTokens must be at least 0. Found -1.'],
    ['plans: { a: { monthlyUsd: ▸1e13 } }', 'plans.a.monthlyUsd must be between 0 and 1000000000000. Found 10000000000000.'],
    [model('rate: { input: ▸1e300 }'), 'models.m.rate.input must be between 0 and 1000000. Found 1e+300.'],
    [model('price: { input: 1, output: ▸1e7 }'), 'models.m.price.output must be between 0 and 1000000. Found 10000000.'],
    [
      'retention: { usageMonths: ▸20001, bodiesDays: ▸1000001 }',
      'retention.usageMonths must be between 1 and 20000. Found 20001.',
      'retention.bodiesDays must be between 1 and 1000000. Found 1000001.',
    ],
    ['responses: { retentionDays: ▸1000001 }', 'responses.retentionDays must be between 1 and 1000000. Found 1000001.'],
    ['cache: { "*": { ttlSeconds: ▸0 } }', 'cache.*.ttlSeconds must be more than 0. Found 0.'],
  ];
  const providers: readonly Row[] = [
    [
      'providers: { p: { dialect: ▸openai, baseUrl: "http://x" } }',
      'providers.p.dialect must be "openai-chat", "openai-responses", "anthropic-messages" or "gemini". Found "openai".',
    ],
    ['providers: { p: { dialect: gemini, baseUrl: ▸x.example } }', 'providers.p.baseUrl must start with http:// or https://. Found "x.example".'],
    [
      'providers: { p: { dialect: gemini, baseUrl: ▸"file:///etc/passwd" } }',
      'providers.p.baseUrl must start with http:// or https://. Found "file:///etc/passwd".',
    ],
    ['providers: { p: { dialect: gemini, baseUrl: ▸"http://" } }', 'providers.p.baseUrl must be an address such as https://host/path. Found "http://".'],
    [
      'providers: { p: { dialect: gemini, baseUrl: ▸"http://a\\\\b" } }',
      'providers.p.baseUrl must be an address such as https://host/path. Found "http://a\\\\b".',
    ],
    ['providers: { p: { dialect: gemini, baseUrl: ▸"http://me:secret@x" } }', 'providers.p.baseUrl must not contain a user name or a password. Found a text.'],
    ['providers: { p: { dialect: gemini, baseUrl: ▸"http://x?key=secret" } }', 'providers.p.baseUrl must not contain ? or #. Found a text.'],
    ['providers: { p: { dialect: openai-chat, baseUrl: ▸"https://{region}.x" } }', 'providers.p.baseUrl must not contain { or }. Found "https://{region}.x".'],
    [
      'providers: { p: { dialect: openai-chat, baseUrl: ▸"https://x/v1/chat/completions" } }',
      'providers.p.baseUrl must be the base address: leave out /chat/completions, which is added to it. Found "https://x/v1/chat/completions".',
    ],
    [
      'providers: { p: { dialect: gemini, baseUrl: ▸"https://x/v1beta/models/a:generateContent" } }',
      'providers.p.baseUrl must be the base address: leave out /models/a:generateContent, which is added to it. Found "https://x/v1beta/models/a:generateContent".',
    ],
    ['providers: { ▸built-in: { dialect: gemini, baseUrl: "http://x" } }', 'providers.built-in is the name of the built-in provider; choose another.'],
    ['providers: { ▸"a/b": { dialect: gemini, baseUrl: "http://x" } }', 'providers.a/b must have a name of at most 64 letters, digits, ".", "_" and "-".'],
    ['providers:\n  ▸p: { dialect: openai-chat, baseUrl: "http://x", kind: azure }', 'providers.p is of kind azure and needs apiVersion.'],
    [provider('▸apiVersion: "1"'), 'providers.p.apiVersion is allowed only with kind azure.'],
    [
      'providers:\n  p: { dialect: gemini, kind: ▸azure, baseUrl: "http://x", apiVersion: a }',
      'providers.p.kind is not possible with dialect gemini. Found "azure".',
    ],
    [
      'providers:\n  p: { dialect: openai-chat, kind: ▸vertex, baseUrl: "https://{region}.x", project: p, regions: [a] }',
      'providers.p.kind is not possible with dialect openai-chat. Found "vertex".',
    ],
    [
      'providers:\n  p: { dialect: gemini, kind: vertex, publisher: ▸anthropic, baseUrl: "https://{region}.x", project: p, regions: [a] }',
      'providers.p.publisher needs dialect anthropic-messages: its models do not speak gemini. Found "anthropic".',
    ],
    [provider('▸project: x'), 'providers.p.project is allowed only with kind vertex.'],
    ['providers:\n  ▸v: { dialect: gemini, kind: vertex, baseUrl: "https://{region}.x", regions: [a] }', 'providers.v is of kind vertex and needs project.'],
    ['providers:\n  ▸v: { dialect: gemini, kind: vertex, baseUrl: "https://{region}.x", project: p }', 'providers.v is of kind vertex and needs regions.'],
    [vertex('project: ▸"../x", regions: [a]'), 'providers.v.project must be the id of a project. Found "../x".'],
    [vertex('project: p, regions: [a, b, ▸a]'), 'providers.v.regions[2] repeats a region of the list. Found "a".'],
    [vertex('project: p, regions: [▸evil.example/]'), 'providers.v.regions[0] must be a region such as us-east1. Found "evil.example/".'],
    [vertex('project: p, regions: [a], residency: { us: [a, ▸b] }'), 'providers.v.residency.us[1] must be one of the regions of this provider. Found "b".'],
    [vertex('project: p, regions: [a], credentials: ▸{}'), 'providers.v.credentials must have exactly one of serviceAccountFile, accessToken and apiKey.'],
    [
      'providers: { v: { dialect: gemini, kind: vertex, project: p, regions: [a], baseUrl: ▸"http://{host}" } }',
      'providers.v.baseUrl may contain {region}, but no other { or }. Found "http://{host}".',
    ],
    [provider('headers: { ▸"a b": c }'), 'providers.p.headers.a b is not a valid header name.'],
    [provider('headers: { ▸Host: c }'), 'providers.p.headers.Host is a header of the connection itself and cannot be set.'],
    [provider('headers: { a: b, ▸A: c }'), 'providers.p.headers.A repeats another header; header names are case-insensitive.'],
    [provider('headers: { a: ▸"secret\\r\\nx: y" }'), 'providers.p.headers.a must be one line of ASCII characters. What was found is not shown.'],
    [
      provider('apiKeys: [▸"sk secret"]'),
      'providers.p.apiKeys[0] must be visible ASCII characters without a space or a line end. What was found is not shown.',
    ],
    [provider('apiKeys: [secret, ▸secret]'), 'providers.p.apiKeys[1] repeats a key of the list. What was found is not shown.'],
  ];
  const models: readonly Row[] = [
    [`${p}\nmodels: { m: { targets: [{ provider: ▸q }] } }`, 'models.m.targets[0].provider must name a provider. Found "q".'],
    [
      'providers: { openai: { dialect: openai-chat, baseUrl: "http://x" } }\nmodels: { m: { targets: [{ provider: ▸opnai }] } }',
      'models.m.targets[0].provider must name a provider. Did you mean openai? Found "opnai".',
    ],
    [
      `${p}\nmodels: { gpt-5.2: { targets: [{ provider: p }] } }\ndefaults: { chat: ▸gpt5.2 }`,
      'defaults.chat must name a model of kind chat. Did you mean gpt-5.2? Found "gpt5.2".',
    ],
    ['models: { m: { targets: [{ provider: ▸bulit-in }] } }', 'models.m.targets[0].provider must name a provider. Did you mean built-in? Found "bulit-in".'],
    ['models: { m: { targets: [{ provider: ▸constructor }] } }', 'models.m.targets[0].provider must name a provider. Found "constructor".'],
    [
      `${p}\nmodels: { m: { targets: [{ provider: p }], ▸price: { output: 1 } } }`,
      'models.m.price.input is required, unless picture, second or character is given.',
    ],
    [
      model('} , n: { targets: [{ provider: built-in, model: ▸nope }]'),
      'models.n.targets[0].model must be built-in, or absent: the built-in provider has one chat model. Found "nope".',
    ],
    [
      'models: { m: { targets: [{ provider: built-in, model: ▸built-in-embedding }] } }',
      'models.m.targets[0].model must be built-in, or absent: the built-in provider has one chat model. Found "built-in-embedding".',
    ],
    [
      'models: { m: { kind: speech, targets: [{ provider: built-in, model: built-in-speech }, { provider: built-in, model: ▸built-in }] } }',
      'models.m.targets[1].model must be built-in-speech, or absent: the built-in provider has one speech model. Found "built-in".',
    ],
    ['models: { ▸m: {} }', 'models.m.targets is required, with at least one target.'],
    ['models: { m: { ▸targets: [] } }', 'models.m.targets is required, with at least one target.'],
    ['models: { built-in: { targets: ▸[{ provider: built-in }] } }', 'models.built-in.targets must be empty; a built-in model has no targets.'],
    ['models: { built-in: { kind: ▸speech } }', 'models.built-in.kind must be chat for this built-in model. Found "speech".'],
    [model('tokensPerSecond: ▸9'), 'models.m.tokensPerSecond is for the built-in models only. Found 9.'],
    [model('aliases: [a, ▸m]'), 'models.m.aliases[1] is already the name of a model. Found "m".'],
    [model('aliases: [a, ▸a]'), 'models.m.aliases[1] is already an alias of m. Found "a".'],
    [
      `${model('aliases: [a]')}\nplans: { free: { modelLimits: { m: { monthlyTokens: 1 }, a: ▸{ monthlyTokens: 2 } } } }`,
      'plans.free.modelLimits.a limits the same model as m: a model has one entry, by its name or an alias.',
    ],
    [model('aliases: [▸built-in]'), 'models.m.aliases[0] is already the name of a model. Found "built-in".'],
    [model('aliases: [▸"*"]'), 'models.m.aliases[0] must be a model name without white space and without *. Found "*".'],
    [
      `${p}\nmodels: { ▸"gpt-*": { targets: [{ provider: p, model: ▸"*" }] } }`,
      'models.gpt-* must have a name without white space and without *; only "*" alone stands for other names, and for all of them.',
      'models.gpt-*.targets[0].model must be a model name without white space and without *; absent: the requested name. Found "*".',
    ],
    [
      `${p}\nmodels: { "*": { targets: [{ provider: p }] } }\ndefaults: { chat: ▸"m*" }\nplans: { a: { models: ["*"] }, b: { models: [m, ▸"m*"], modelLimits: { ▸"*": { monthlyTokens: 1 } } } }\ncache: { ▸"m*": { ttlSeconds: 1 } }\nguard: { checks: [{ name: a, when: [before], kind: pii, entities: [email], action: mask, models: [▸"*"] }] }`,
      'defaults.chat must name a model of kind chat. Found "m*".',
      'plans.b.models[1] must name a model, or be "*" for all. Found "m*".',
      'plans.b.modelLimits.* must name one model.',
      'cache.m* must name a chat model, or be "*".',
      'guard.checks[0].models[0] must name a model. Found "*".',
    ],
    [
      `${model('aliases: [nick]')}\nplans: { p: { models: [▸nope, m, built-in], modelLimits: { ▸nikc: { monthlyTokens: 1 }, nick: {} } } }`,
      'plans.p.models[0] must name a model, or be "*" for all. Found "nope".',
      'plans.p.modelLimits.nikc must name one model.',
    ],
    [model('aliases: [a] }, n: { targets: [{ provider: p }], aliases: [▸a]'), 'models.n.aliases[0] is already an alias of m. Found "a".'],
    [model('larger: ▸n'), 'models.m.larger must name a model. Found "n".'],
    [
      `${p}\nmodels: { m: { targets: [{ provider: p }], larger: ▸b }, b: { targets: [{ provider: p }], larger: ▸m } }`,
      'models.m.larger leads back to this model. Found "b".',
      'models.b.larger leads back to this model. Found "m".',
    ],
    [
      `${p}\nmodels: { m: { targets: [{ provider: p }], larger: ▸b }, b: { kind: speech, targets: [{ provider: p }] } }`,
      'models.m.larger must name a chat model, and only a chat model may have it. Found "b".',
    ],
    [model('larger: ▸m'), 'models.m.larger leads back to this model. Found "m".'],
    [model('residency: ▸us'), 'models.m.residency must name a residency list of a provider of this model. Found "us".'],
    [`${p}\nmodels: { "*": { kind: ▸embedding, targets: [{ provider: p }] } }`, 'models.*.kind must be chat; "*" matches only chat models. Found "embedding".'],
    [`${model('')}\ndefaults: { chat: ▸n }`, 'defaults.chat must name a model of kind chat. Found "n".'],
    [`${model('')}\ndefaults: { speech: ▸m }`, 'defaults.speech must name a model of kind speech. Found "m".'],
    ['defaults: { embedding: ▸text-embedding-3-small }', 'defaults.embedding must name a model of kind embedding. Found "text-embedding-3-small".'],
    ['defaults: { chat: ▸"*" }', 'defaults.chat must name a model of kind chat. Found "*".'],
  ];
  const rest: readonly Row[] = [
    ['newUsers: { plan: ▸gold }', 'newUsers.plan must name a plan, or unlimited. Found "gold".'],
    ['plans: { a: { residency: ▸us } }', 'plans.a.residency must name a residency list of a provider. Found "us".'],
    ['trustedProxies: [▸10.0.0.0/33]', 'trustedProxies[0] must be an address, or a network such as 10.0.0.0/8. Found "10.0.0.0/33".'],
    ['outbound: { allow: [▸"http://a/b"] }', 'outbound.allow[0] must be scheme://host:port of one host, with nothing after it. Found "http://a/b".'],
    ['outbound: { caFile: ▸/no/such.pem }', 'outbound.caFile cannot be read (ENOENT). Found "/no/such.pem".'],
    ['outbound: { proxy: ▸"socks5://me:secret@x" }', 'outbound.proxy must be an address such as http://proxy:3128. What was found is not shown.'],
    ['cors: { origins: [▸a.example] }', 'cors.origins[0] must be scheme://host:port of one host, with nothing after it. Found "a.example".'],
    ['databaseUrl: ▸"mysql://me:secret@x"', 'databaseUrl must be an address such as postgres://user@host/database. What was found is not shown.'],
    ['blobs: { ▸s3: { bucket: b, accessKeyId: a, secretAccessKey: s } }', 'blobs.s3 also needs endpoint.'],
    ['blobs: { ▸s3: { endpoint: "https://x", secretAccessKey: s } }', 'blobs.s3 also needs bucket, accessKeyId.'],
    ['workers: ▸2', 'workers must be 1 unless DATABASE_URL names a PostgreSQL server. Found 2.'],
    ['routing: { cooldownSeconds: 9, cooldownMaxSeconds: ▸1 }', 'routing.cooldownMaxSeconds must be at least cooldownSeconds. Found 1.'],
    ['guard: { checks: [▸{ name: a, kind: regex, action: deny }] }', 'guard.checks[0] is of kind regex and needs pattern.'],
    ['guard: { checks: [{ name: a, kind: regex, pattern: ▸"(", action: deny }] }', 'guard.checks[0].pattern must be a regular expression. Found "(".'],
    [
      'guard: { checks: [{ name: a, kind: regex, pattern: a, when: ▸[], action: deny }] }',
      'guard.checks[0].when must contain before, after or both. Found a list.',
    ],
    ['guard: { checks: [{ name: a, kind: pii, entities: [email, ▸mood], action: mask }] }', 'guard.checks[0].entities[1] must be one of email, phone,'],
    [
      'guard: { checks: [{ name: a, kind: http, url: ▸"ftp://x", action: mask }] }',
      'guard.checks[0].url must start with http:// or https://. Found "ftp://x".',
    ],
    [
      'guard: { checks: [{ name: a, kind: moderation, model: ▸m, action: deny }] }',
      'guard.checks[0].model must name a model of kind moderation or chat. Found "m".',
    ],
    [
      'guard: { checks: [{ name: a, kind: moderation, model: built-in, action: ▸mask }] }',
      'guard.checks[0].action must be deny or flag; a moderation model does not report which words to mask. Found "mask".',
    ],
    ['guard: { checks: [{ name: a, kind: regex, pattern: a, action: deny, models: [▸m] }] }', 'guard.checks[0].models[0] must name a model. Found "m".'],
    ['cache: { ▸m: { ttlSeconds: 1 } }', 'cache.m must name a chat model, or be "*".'],
    ['mcp: { stdio: [{ name: a, command: ▸ls }] }', 'mcp.stdio[0].command must be an absolute path. Found "ls".'],
    ['mcp: { whitelist: [{ name: a, url: ▸"ftp://x" }] }', 'mcp.whitelist[0].url must start with http:// or https://. Found "ftp://x".'],
  ];
  const variables: readonly Row[] = [
    ['port: 1\nhost: ▸${NONE}', 'host needs the environment variable NONE, which is not set.'],
    ['host: ▸${EMPTY}', 'host needs the environment variable EMPTY, which is not set.'],
    ['host: ▸${constructor}', 'host needs the environment variable constructor, which is not set.'],
    [
      'host: ▸"${A}${B}"\npublicUrl: ▸${C}',
      'host needs the environment variables A, B, which are not set.',
      'publicUrl needs the environment variable C, which is not set.',
    ],
    ['host: ▸"${MY-NAME}"', 'host has ${ without a variable name and }; expected ${NAME}, or $${ for a literal ${.'],
    ['publicUrl: ▸${KEY}', 'publicUrl must start with http:// or https://. Found "${KEY}".'],
  ];

  test.each([...syntax, ...yamlTricks, ...names, ...forms, ...providers, ...models, ...rest, ...variables].map((row) => [row]))(
    '%j',
    ([yaml, ...complaints]) => {
      const places = placesIn(yaml);
      const expected = complaints.map((one, at) => `${places[at]}: ${one}`);
      const told = tell(yaml, { KEY: 'sk-secret', EMPTY: '' });
      expect(told.map((line, at) => (expected[at]?.endsWith(',') ? line.slice(0, expected[at].length) : line))).toEqual(expected);
      expect(told.join()).not.toContain('secret');
    },
  );

  test('and everything that cannot be meant is told at once', () => {
    expect(tell('providers: { p: { dialect: openai-chat, baseUrl: "api.openai.com/v1", apiKeys: "k" } }\nsearch: { url: x, apiKey: 5 }')).toEqual([
      'dragoman.yaml:1:80: providers.p.apiKeys must be an array. What was found is not shown.',
      'dragoman.yaml:2:27: search.apiKey must be a string. What was found is not shown.',
      'dragoman.yaml:2:16: search.url must start with http:// or https://. Found "x".',
      'dragoman.yaml:1:50: providers.p.baseUrl must start with http:// or https://. Found "api.openai.com/v1".',
    ]);
    expect(tell('workers: 2\nnewUsers: { plan: gold }\nmodels: { m: { targets: [{ provider: q }] } }')).toHaveLength(3);
  });

  const gone = 'providers: { a: { dialect: openai, baseUrl: "http://x" } }';
  const misspelt = 'providers: { a: { dialect: openai-chat, baseUrl: "http://x", apiKey: k } }';
  test.each<[yaml: string, ...places: string[]]>([
    [
      `${misspelt}\nmodels: { m: { targets: [{ provider: b }] }, n: { targets: [] } }\ndefaults: { chat: gpt }\nguard: { checks: [{ name: c, kind: pii, action: mask }] }\ncache: { gpt: { ttlSeconds: 1 } }`,
      'providers.a.apiKey',
      'models.m.targets[0].provider',
      'models.n.targets',
      'defaults.chat',
      'cache.gpt',
      'guard.checks[0]',
    ],
    [
      `${gone}\nmodels: { m: { targets: [{ provider: a }, { provider: b }] }, n: { targets: [{ provider: a }], residency: us } }`,
      'providers.a.dialect',
      'models.m.targets[1].provider',
    ],
    [`${gone}\ndefaults: { embedding: text-embedding-3-small, chat: gpt }`, 'providers.a.dialect', 'defaults.chat'],
    [
      'models: { m: { kind: x, targets: [{ provider: built-in }], aliases: [e] } }\ndefaults: { embedding: e, speech: o }\nguard: { checks: [{ name: c, kind: regex, pattern: a, action: deny, models: [e, o] }] }\ncache: { e: { ttlSeconds: 1 } }',
      'models.m.kind',
      'defaults.speech',
      'guard.checks[0].models[1]',
    ],
    ['models: { n: 7 }\ncache: { n: { ttlSeconds: 1 } }', 'models.n'],
    ['models: { m: { aliases: [7], targets: [{ provider: built-in }] } }\ndefaults: { chat: alias }', 'models.m.aliases[0]'],
    ['models: 7\nnewUsers: { plan: gold }\ndefaults: { chat: m }', 'models', 'newUsers.plan'],
    ['plans: { gold: 7, a: { residency: us } }\nnewUsers: { plan: gold }', 'plans.gold', 'plans.a.residency'],
    ['databaseUrl: 7\nworkers: 2', 'databaseUrl'],
    ['routing: { cooldownSeconds: x, cooldownMaxSeconds: 0.1 }', 'routing.cooldownSeconds'],
  ])('a mistake hides only what may follow from it: %j', (yaml, ...places) => {
    expect(tell(yaml).map((line) => line.split(' ')[1])).toEqual(places);
  });
});

describe('a variable or an option is refused by its name', () => {
  test.each([
    [{ PORT: 'abc' }, 'PORT must be an integer. Found "abc".'],
    [{ PORT: '65536' }, 'PORT must be between 0 and 65535. Found 65536.'],
    [{ HOST: 'http://x' }, 'HOST must be an address or a host name, such as 127.0.0.1. Found "http://x".'],
    [{ DRAGOMAN_WORKERS: '2' }, 'DRAGOMAN_WORKERS must be 1 unless DATABASE_URL names a PostgreSQL server. Found 2.'],
    [{ DRAGOMAN_WORKERS: '0' }, 'DRAGOMAN_WORKERS must be between 1 and 1024. Found 0.'],
    [{ DRAGOMAN_MASTER_KEY: 'c2VjcmV0' }, 'DRAGOMAN_MASTER_KEY must be 32 bytes in base64 (44 characters). What was found is not shown.'],
    [{ DRAGOMAN_ADMIN_EMAIL: 'nobody' }, 'DRAGOMAN_ADMIN_EMAIL must be an e-mail address. Found "nobody".'],
    [{ DRAGOMAN_ADMIN_API_KEY: 'c2VjcmV0' }, 'DRAGOMAN_ADMIN_API_KEY must be 64 characters of [A-Za-z0-9_-]. What was found is not shown.'],
    [{ DATABASE_URL: 'c2VjcmV0' }, 'DATABASE_URL must be an address such as postgres://user@host/database. What was found is not shown.'],
    [{ HTTPS_PROXY: 'c2VjcmV0' }, 'HTTPS_PROXY must be an address such as http://proxy:3128. What was found is not shown.'],
    [{ OPENAI_API_KEY: 'c2VjcmV0\n' }, 'OPENAI_API_KEY must be visible ASCII characters without a space or a line end. What was found is not shown.'],
    [{ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'x' }, 'OPENAI_BASE_URL must start with http:// or https://. Found "x".'],
    [{ OLLAMA_HOST: 'a b' }, 'OLLAMA_HOST must start with http:// or https://. Found "a b/v1".'],
  ])('%j', (env, expected) => {
    const told = complaint(() => readFrom(undefined, { env }));
    expect(told).toBe(expected);
    expect(told).not.toContain('c2VjcmV0');
  });

  test.each(['http://127.0.0.1:8080/v1', 'http://localhost:8080', 'http://[::1]:8080/v1', 'http://127.1.2.3:8080/v1'])(
    'the address of the server itself is that of no provider: %s',
    (address) => {
      const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: address };
      expect(complaint(() => readFrom(undefined, { env }))).toContain('OPENAI_BASE_URL is the address of this server itself');
      expect(complaint(() => readFrom('host: 0.0.0.0', { env }))).toContain('is the address of this server itself');
      expect(complaint(() => readFrom(undefined, { env: { ...env, PORT: '8081' } }))).toBeUndefined();
      expect(complaint(() => readFrom('host: 10.1.2.3', { env }))).toBeUndefined(); // another program may listen there
    },
  );

  test('neither is the public address of the server; another path of it may lead elsewhere', () => {
    const told = (address: string) =>
      complaint(() => readFrom('publicUrl: https://gateway.example.org', { env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: address } }));
    expect(told('https://gateway.example.org/v1')).toContain('is the address of this server itself');
    expect(told('https://gateway.example.org/ollama/v1')).toBeUndefined();
  });

  test.each([
    [{ port: 'x' }, '--port must be an integer. Found "x".'],
    [{ logLevel: 'loud' }, '--log-level must be "trace", "debug", "info", "warn", "error" or "fatal". Found "loud".'],
    [{ databaseUrl: 'secret' }, '--database-url must be an address such as postgres://user@host/database. What was found is not shown.'],
    [{ host: '' }, '--host must not be empty. Found "".'],
  ])('%j', (args, expected) => {
    expect(complaint(() => readFrom(undefined, { args }))).toBe(expected);
  });

  test('a bad value of the file is refused also where the environment comes first', () => {
    expect(complaint(() => readFrom('port: abc', { env: { PORT: '1' } }))).toBe('dragoman.yaml:1:7: port must be an integer. Found "abc".');
  });
});

test('commands that ask no provider read settings whose providers lack a variable, and refuse what else is wrong', () => {
  const yaml =
    'port: 7\nproviders:\n  openai: { dialect: openai-chat, baseUrl: "http://x", apiKeys: ["${OPENAI_API_KEY}"] }\nmodels: { m: { targets: [{ provider: openai }] } }\n';
  expect(complaint(() => readFrom(yaml))).toContain('needs the environment variable OPENAI_API_KEY');
  expect(readFrom(yaml, { asksProviders: false }).settings.port).toBe(7);
  const names = 'plans: { p: { models: [gpt-5.2] } }\n'; // which a variable that is not set here may bring
  expect(complaint(() => readFrom(names))).toContain('plans.p.models[0] must name a model');
  expect(readFrom(names, { asksProviders: false }).settings.plans['p']).toEqual({ models: ['gpt-5.2'] });
  expect(complaint(() => readFrom(`${yaml}workers: 2\n`, { asksProviders: false }))).toContain('workers must be 1');
});
