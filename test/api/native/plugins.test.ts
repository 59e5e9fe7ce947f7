/* Plugins: the built-in ones, and those that users make; prompts, calls over HTTP and scripts. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { startUpstream, talkative, type Upstream } from '../../support/fakes/upstream/index.ts';
import { openSite, outsideOf, publicAddress, type Site } from '../../support/fakes/web.ts';
import { loggedAs, newMember } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { person, visited, visitorsOf, type Person, type Visited } from './visitors.ts';

const long = 120_000;
const mine = '/server/mine/plugins';
const parrot = { plugin_name: 'parrot', title: 'Parrot', kind: 'prompt', template: 'Say exactly: {{words}}' };

let server: TestServer;
let all: Visited;
let ada: Person;
let bob: Person;
let site: Site;
let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
  site = await openSite('127.0.0.2');
  const outside = outsideOf((host) => (host === 'inner.example' ? ['127.0.0.1'] : [publicAddress]), '127.0.0.2');
  server = await startTestServer({ outside, upstream: upstream.url, yaml: `outbound: { allow: ["http://api.example:${site.port}"] }\n` });
  all = visitorsOf(server);
  [ada, bob] = [await person(all), await person(all)];
});
beforeEach(() => {
  upstream.reset();
  site.reset();
  bodies.length = 0;
});
afterAll(async () => {
  await server.close();
  await site.close();
  await upstream.close();
});

/** Bodies of requests, as they arrived. */
const bodies: string[] = [];
function says(type: string, text: string): void {
  site.answer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.setHeader('content-type', type).end(text);
    });
  });
}

const address = (path: string) => `http://api.example:${site.port}${path}`;
const made = async (plugin: object, by = ada): Promise<number> => {
  const answer = await by.ask('POST', mine, { title: 'A plugin', ...plugin });
  expect([answer.status, answer.body]).toEqual([201, expect.anything()]);
  return answer.body['id'] as number;
};
const run = (name: string, values: object = {}, more: object = {}, by = ada) =>
  by.ask('POST', '/server/execute-plugin', { plugin_name: name, plugin_values: values, model: 'built-in', ...more });
/** By a model that says again what it is asked. */
const echoed = async (name: string, values: object) => (await run(name, values, { model: 'gpt-4o-mini' })).body['message'] as string;
const share = (id: number, right = 'read') => ada.ask('PUT', `${mine}/${id}/grants`, { items: [{ user: bob.email, right }] });
describe('the built-in plugins', () => {
  test(proves('server.get-plugins', 'POST /get-plugins lists ten of them, each with a text that Python can fill in'), async () => {
    const { status, body } = await bob.ask('POST', '/server/get-plugins');
    const items = body['response'] as { plugin_name: string; prompt_template: string; fields: { name: string; type: string; required: boolean }[] }[];
    expect([status, items.map(({ plugin_name }) => plugin_name)]).toEqual([
      200,
      ['summarise', 'translate', 'rewrite', 'extract-json', 'compare', 'minutes', 'email-reply', 'sql', 'explain-code', 'page-summary'],
    ]);
    expect(items[1]).toEqual({
      id: 2,
      plugin_name: 'translate',
      title: 'Translate',
      description: expect.any(String) as string,
      category: 'Writing',
      file_mode: true,
      paid_only: false,
      regex: null,
      prompt_template: '[[translate]]\nText: {text}\nInto which language: {language}',
      fields: [
        { name: 'text', label: 'Text', type: 'textarea', required: false, default: null, options: null },
        { name: 'language', label: 'Into which language', type: 'text', required: true, default: null, options: null },
        { name: 'file', label: 'File', type: 'file', required: false, default: null, options: null },
      ],
    });
    for (const { prompt_template: template, fields, plugin_name: name } of items) {
      expect(template.startsWith(`[[${name}]]`)).toBe(true);
      const places = Array.from(template.matchAll(/\{([^{}]*)\}/g), ([, field]) => field);
      expect(places).toEqual(fields.filter(({ type }) => type !== 'file').map((field) => field.name));
      expect(template.replaceAll(/\{\w+\}/g, '')).not.toMatch(/[{}]/);
    }
    expect((await bob.ask('GET', '/server/get-plugins')).body).toEqual(body);
  });

  test(proves('server.execute-plugin', 'POST /execute-plugin answers with one JSON object, and with a stream on demand'), async () => {
    const values = { text: 'The heron stands in the water. It looks for fish.', length: 'short' };
    const answer = await run('summarise', values);
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({ response: 'OK', type: 'completion', embedding_down: false, vectors_down: false, references: '', added_obj: null, status: 200 }),
    ]);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8'); // clients read it as one JSON object, or as a text
    expect((await ada.ask('POST', '/server/execute-plugin', { plugin_name: 7 })).headers.get('content-type')).toContain('application/json');
    expect(await echoed('summarise', values)).toContain('looks for fish');
    expect(upstream.requests).toHaveLength(1);
    const form = new URLSearchParams({ plugin_name: 'summarise', plugin_values: JSON.stringify(values), model: 'built-in' });
    const sent = await fetch(`${server.url}/server/execute-plugin`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
    expect(((await sent.json()) as { message: string }).message).toBe(answer.body['message']);
    const stream = await fetch(`${server.url}/server/execute-plugin`, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json' },
      body: JSON.stringify({ plugin_name: 'summarise', plugin_values: values, model: 'built-in', streaming: true }),
    });
    expect(stream.headers.get('content-type')).toContain('text/plain');
    expect((await stream.text()).split('@|@sep@|@').map((frame) => (JSON.parse(frame) as { type: string }).type)).toContain('yield');
  });

  test('extracting keeps to the schema that it is given', async () => {
    const schema = {
      type: 'object',
      properties: { bird: { type: 'string' }, count: { type: 'integer' } },
      required: ['bird', 'count'],
      additionalProperties: false,
    };
    for (const given of [schema, JSON.stringify(schema)]) {
      const { body } = await run('extract-json', { text: 'Three herons stand in the water.', schema: given });
      expect(JSON.parse(body['message'] as string)).toEqual({ bird: expect.any(String) as string, count: expect.any(Number) as number });
    }
    expect((await run('extract-json', { text: 'a', schema: 'none' })).status).toBe(400);
  });

  test.each([
    ['rewrite', { text: 'a', tone: 'plain' }],
    ['compare', { first: 'a', second: 'b' }],
    ['minutes', { text: 'Ada and Bob met.' }],
    ['email-reply', { message: 'When do we meet?' }],
    ['sql', { question: 'How many birds?', tables: 'bird (id, name)' }],
    ['explain-code', { text: 'let a = 1;' }],
  ])('%s answers', async (name, values) => {
    const { status, body } = await run(name, values);
    expect([status, (body['message'] as string).length > 0]).toEqual([200, true]);
  });

  test('a summary of a page reads the page, and no inner address', async () => {
    says('text/html', '<h1>Herons</h1><p>Herons eat fish.</p>');
    expect(await echoed('page-summary', { url: address('/herons') })).toContain('Herons eat fish.');
    for (const url of [`http://inner.example:${site.port}/`, 'http://127.0.0.1/', 'javascript:1', 'file:///etc/passwd'])
      expect([url, (await run('page-summary', { url })).status]).toEqual([url, 400]);
    expect(site.requests).toHaveLength(1);
  });

  test(proves('server.execute-plugin-with-file', 'POST /execute-plugin-with-file runs one on a file'), async () => {
    const form = (name: string, file: boolean) => {
      const fields = new FormData();
      fields.set('plugin_name', name);
      fields.set('model', 'gpt-4o-mini');
      if (file) fields.set('file', new Blob(['The heron eats only fish.']), 'heron.txt');
      return fields;
    };
    const send = (body: FormData) => fetch(`${server.url}/server/execute-plugin-with-file`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body });
    const answer = await send(form('summarise', true));
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ response: 'OK', type: 'completion' })]);
    expect(JSON.stringify(upstream.requests[0]?.json)).toContain('The heron eats only fish.');
    expect((await send(form('summarise', false))).status).toBe(400);
    const refused = await send(form('rewrite', true));
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('takes no files')]);
  });

  test.each([
    [{ plugin_values: {} }, 400, 'plugin_name'],
    [{ plugin_name: 'nobody', plugin_values: {} }, 404, 'plugin'],
    [{ plugin_name: 'rewrite' }, 400, 'plugin_values'],
    [{ plugin_name: 'rewrite', plugin_values: {} }, 400, 'plugin_values.text'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 'a', tone: 'rude' } }, 400, 'plugin_values.tone'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 5 } }, 400, 'plugin_values.text'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 'a', other: 1 } }, 400, 'plugin_values.other'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 'a', constructor: 1 } }, 400, 'plugin_values.constructor'],
    [{ plugin_name: 'rewrite', plugin_values: 'text' }, 400, 'plugin_values'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 'a' }, model: 'nobody-has-it/x y' }, 400, 'model'],
    [{ plugin_name: 'rewrite', plugin_values: { text: 'a' }, code: 'x', template: 'Say exactly: ha', system: 'x' }, 200, ''],
  ])('%j is answered with %i', async (body, status, field) => {
    const answer = await ada.ask('POST', '/server/execute-plugin', { model: 'built-in', ...body });
    expect([answer.status, status === 200 ? '' : answer.body['message']]).toEqual([status, expect.stringContaining(field)]);
    expect(answer.body['message']).not.toBe('ha');
  });
});

describe('a question with a plugin', () => {
  test('an unknown model is 400, also where the plugin makes its answer itself', async () => {
    await made({ plugin_name: 'by-itself', kind: 'script', script: { code: 'export default () => 1' } });
    for (const [path, body] of [
      ['/server/execute-plugin', { plugin_name: 'by-itself', plugin_values: {} }],
      ['/server/query-plugin', { plugin_name: 'by-itself' }],
      ['/server/query', { message: '[[by-itself]]' }],
    ] as const) {
      const { status, body: said } = await ada.ask('POST', path, { ...body, model: 'nobody-has-it' });
      expect([path, status, said]).toEqual([path, 400, expect.objectContaining({ status: 400, message: expect.stringContaining('nobody-has-it') as string })]);
    }
  });

  test(proves('server.query-plugin', 'POST /query-plugin and /query with [[name]] before the message run it'), async () => {
    await made({ ...parrot, plugin_name: 'parrot-of-questions' });
    const ask = async (path: string, body: object, by = ada) => (await by.ask('POST', path, { model: 'built-in', ...body })).body['message'];
    expect(await ask('/server/query-plugin', { message: 'x', plugin_name: 'parrot-of-questions', plugin_values: { words: 'heron' } })).toBe('heron');
    for (const named of [{ plugin_name: 'parrot-of-questions' }, { plugin: 'parrot-of-questions' }])
      expect(await ask('/server/query-plugin', { ...named, plugin_values: { words: 'egret' } })).toBe('egret');
    expect(await ask('/server/query-plugin', { plugin_name: 'parrot-of-questions' })).toMatch(/^plugin_values\.words is required/);
    expect(await ask('/server/query-plugin', { message: '[[parrot-of-questions]]\nwords: grey heron' })).toBe('grey heron');
    expect(await ask('/server/query', { message: '[[parrot-of-questions]] two herons' })).toBe('two herons');
    expect(await ask('/server/query', { message: [{ user: 'me', message: '[[parrot-of-questions]]\nwords: three' }] })).toBe('three');
    expect(await ask('/server/query', { message: 'Say exactly: [[parrot-of-questions]]' })).toBe('[[parrot-of-questions]]');
    expect(await ask('/server/query', { message: '[[nobody]] four', model: 'gpt-4o-mini' })).toContain('[[nobody]] four');
    expect((await ada.ask('POST', '/server/query-plugin', { message: '[[nobody]]' })).status).toBe(404);
    expect((await ada.ask('POST', '/server/query-plugin', { message: 'a' })).status).toBe(400);
  });

  test('needs the scope of plugins', async () => {
    const narrow = await person(all, {}, { scopes: ['query'] });
    const answer = await narrow.ask('POST', '/server/query', { model: 'built-in', message: '[[rewrite]]\nText: a' });
    expect([answer.status, answer.body['message']]).toEqual([403, expect.stringContaining('plugins')]);
    expect((await narrow.ask('POST', '/server/query', { model: 'built-in', message: '[[nobody]] a' })).status).toBe(200);
  });
});

test.each([
  ['/server/query-plugin', { message: 'a' }],
  ['/server/execute-plugin', {}],
])('%s looks up datasets for keys with a scope that reads them', async (path, body) => {
  const ask = (scopes: readonly string[], dataset: unknown) =>
    person(all, {}, { scopes }).then((by) =>
      by.ask('POST', path, { ...body, model: 'built-in', plugin_name: 'rewrite', plugin_values: { text: 'a' }, dataset }),
    );
  for (const dataset of ['all', 'gone', ['all']]) {
    const { status, body: answer } = await ask(['plugins'], dataset);
    expect([status, answer['message']]).toEqual([403, 'dataset needs the scope query or datasets.']);
    for (const more of ['query', 'datasets']) expect((await ask(['plugins', more], dataset)).status).toBe(dataset === 'gone' ? 404 : 200);
  }
  for (const dataset of [undefined, null, 'none', []]) expect((await ask(['plugins'], dataset)).status).toBe(200);
});

test('a file with a plugin is looked up in no dataset by a key of plugins alone', async () => {
  const { key } = await person(all, {}, { scopes: ['plugins'] });
  const fields = new FormData();
  for (const [name, value] of Object.entries({ plugin_name: 'summarise', model: 'built-in', dataset: 'all' })) fields.set(name, value);
  fields.set('file', new Blob(['A heron.']), 'heron.txt');
  const answer = await fetch(`${server.url}/server/execute-plugin-with-file`, { method: 'POST', headers: { 'x-access-tokens': key }, body: fields });
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('query or datasets')]);
});

test('the log of a user has what they wrote to a plugin, and not its template', async () => {
  const id = await made({ ...parrot, plugin_name: 'logged', template: 'Say exactly: a hidden recipe for {{words}}' });
  await share(id);
  const logs = async () => ((await bob.ask('POST', '/user/get-user-logs')).body['response'] as { prompt: string }[]).slice(0, 2).map(({ prompt }) => prompt);
  expect((await run('logged', { words: 'soup' }, {}, bob)).status).toBe(200);
  await bob.ask('POST', '/server/query', { message: '[[logged]] bread', model: 'built-in' });
  await expect.poll(logs, { timeout: 30_000 }).toEqual(['bread', '{"words":"soup"}']);
});

test('of shared plugins of a name, one that is shared with the user or a team of theirs comes before one that everybody has', async () => {
  const [eve, dan, cat] = [await person(all), await person(all), await person(all)];
  const shared = async (by: Person, grant: object, says: string) => {
    const id = await made({ ...parrot, plugin_name: 'same-name', template: `Say exactly: ${says}` }, by);
    await by.ask('PUT', `${mine}/${id}/grants`, { items: [{ ...grant, right: 'read' }] });
  };
  const says = async () => (await run('same-name', {}, {}, cat)).body['message'];
  await shared(eve, { everybody: true }, 'of everybody');
  expect(await says()).toBe('of everybody');
  await shared(dan, { user: cat.email }, 'of dan');
  expect(await says()).toBe('of dan');
  await made({ ...parrot, plugin_name: 'same-name', template: 'Say exactly: own' }, cat);
  expect(await says()).toBe('own');
});

describe('a prompt', () => {
  test(proves('P-14', 'is filled in once, and what is filled in stays text'), async () => {
    await made({ ...parrot, plugin_name: 'inert', template: 'Say exactly: {{words}} ${7*7} <%= 7 %> {{7*7}} {{constructor.name}}' });
    for (const words of ['{{words}}', '{{secret.KEY}}', '${process.env}', '$&$1', '{{{{words}}}}'])
      expect((await run('inert', { words })).body['message']).toBe(`${words} \${7*7} <%= 7 %> {{7*7}} {{constructor.name}}`);
    const persona = await ada.ask('POST', '/server/mine/personas', { name: 'Literal', prompt: 'Be {{7*7}} and ${process.env} and <%= 1 %>.' });
    await ada.ask('POST', '/server/query', { message: '{{words}}', model: 'gpt-4o-mini', persona: persona.body['id'] });
    expect(JSON.stringify(upstream.requests.at(-1)?.json)).toContain('Be {{7*7}} and ${process.env} and <%= 1 %>.');
    const bomb = await made({ ...parrot, plugin_name: 'bomb', template: '{{words}}'.repeat(5000) });
    expect(bomb).toBeGreaterThan(0);
    expect((await run('bomb', { words: 'x'.repeat(500_000) })).status).toBe(413);
  });

  test('has a schema of its own, whose types, choices and defaults hold', async () => {
    const fields = {
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1 }, kind: { enum: ['a', 'b'], default: 'a' }, on: { type: 'boolean' } },
      required: ['n'],
    };
    await made({ ...parrot, plugin_name: 'typed', template: 'Say exactly: {{n}} {{kind}} {{on}}.', fields });
    expect((await run('typed', { n: '3', on: 'true' })).body['message']).toBe('3 a true.');
    for (const values of [{ n: 0 }, { n: 'x' }, { n: 1, kind: 'c' }, { n: 1, on: 'maybe' }]) expect((await run('typed', values)).status).toBe(400);
  });

  test('says which limit of its schema a value does not keep to', async () => {
    const fields = {
      type: 'object',
      properties: {
        n: { type: 'integer', minimum: 1, maximum: 5 },
        word: { type: 'string', minLength: 2, maxLength: 3 },
        code: { type: 'string', pattern: '^a' },
        list: { type: 'array', maxItems: 1 },
      },
    };
    await made({ ...parrot, plugin_name: 'limited', template: 'Say exactly: {{n}}.', fields });
    const told = async (values: object) => (await run('limited', values)).body['message'];
    expect(await told({ n: 0 })).toBe('plugin_values.n must be a value of the type integer, at least 1, at most 5.');
    expect(await told({ word: 'long' })).toBe('plugin_values.word must be a value of the type string, of at least 2 characters, of at most 3 characters.');
    expect(await told({ code: 'b' })).toBe('plugin_values.code must be a value of the type string, that matches ^a.');
    expect(await told({ list: [1, 2] })).toBe('plugin_values.list must be a value of the type array, of at most 1 items.');
  });

  test('reads the texts of a form, and of a message that Python has filled in, as what its schema says', async () => {
    const properties = {
      on: { type: 'boolean' },
      size: { type: 'integer' },
      share: { type: 'number' },
      floor: { enum: [1, 2] },
      words: { type: 'array', items: { type: 'string' } },
      more: { type: 'object' },
      name: { type: 'string' },
    };
    const template = 'Say exactly: {{on}} {{size}} {{share}} {{floor}} {{words}} {{more}} {{name}}.';
    await made({ ...parrot, plugin_name: 'texts', template, fields: { type: 'object', properties, required: ['on'] } });
    const values = { on: 'True', size: '9007199254740991', share: '1e-2', floor: '2', words: '["a","b"]', more: '{"a":1}', name: '12' };
    const said = 'true 9007199254740991 0.01 2 ["a","b"] {"a":1} 12.';
    expect((await run('texts', values)).body['message']).toBe(said);
    const { response } = (await ada.ask('POST', '/server/get-plugins')).body as { response: { plugin_name: string; prompt_template: string }[] };
    const { prompt_template: text } = response.find(({ plugin_name: its }) => its === 'texts')!;
    const message = text.replaceAll(/\{(\w{1,20})\}/g, (_, name: keyof typeof values) => values[name]);
    expect((await ada.ask('POST', '/server/query', { message, model: 'built-in' })).body['message']).toBe(said);
    expect((await run('texts', { on: 'False' })).body['message']).toBe(`false${' '.repeat(6)}.`);
    for (const wrong of [{ on: 'perhaps' }, { on: true, words: '["a"' }, { on: true, floor: '3' }, { on: true, more: '[]' }])
      expect([wrong, (await run('texts', wrong)).status]).toEqual([wrong, 400]);
  });

  test('leaves a text as it is where its schema takes it so, and where a number would be rounded, whatever else the schema has', async () => {
    const properties = {
      code: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      word: { anyOf: [{ type: 'string' }, { type: 'boolean' }] },
      pick: { enum: ['1', 1] },
      any: { anyOf: [true, { type: 'integer' }] },
      list: { type: 'array', items: true },
      size: { type: 'integer' },
      sizes: { type: 'array', items: { type: 'integer' } },
      odd: { enum: [{ toString: 1 }, 2] },
    };
    const shown = Object.keys(properties).map((name) => `{{${name}}}`);
    await made({ ...parrot, plugin_name: 'kept', template: `Say exactly: ${shown.join(' ')}.`, fields: { type: 'object', properties } });
    const values = { code: '007', word: 'on', pick: '1', any: '7', list: '["a"]', size: '12', sizes: '5', odd: '2' };
    expect((await run('kept', values)).body['message']).toBe('007 on 1 7 ["a"] 12 [5] 2.');
    for (const wrong of [{ size: '12345678901234567' }, { sizes: '12345678901234567' }, { odd: 'x' }])
      expect([wrong, (await run('kept', wrong)).status]).toEqual([wrong, 400]);
    const schemas = { named: { anyOf: { type: 'integer' } }, single: { enum: 1 }, mixed: { items: [{ type: 'integer' }], type: 'array' } };
    for (const [name, schema] of Object.entries(schemas)) {
      const answer = await ada.ask('POST', mine, { ...parrot, plugin_name: name, title: 'Odd', fields: { type: 'object', properties: { words: schema } } });
      if (answer.status === 201) expect([name, (await run(name, { words: '7' })).status]).not.toEqual([name, 500]);
      else expect([name, answer.status]).toEqual([name, 400]);
    }
  });

  test('keeps its fields in the order in which they were given', async () => {
    const names = ['question', 'n', 'tone', 'audience', 'b', 'a'];
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string', title: `The ${name}`, description: 'd', default: '' }]));
    const id = await made({ ...parrot, plugin_name: 'ordered', template: '{{question}}', fields: { type: 'object', properties } });
    const { response } = (await ada.ask('POST', '/server/get-plugins')).body as {
      response: { plugin_name: string; prompt_template: string; fields: { name: string }[] }[];
    };
    const { prompt_template: text, fields } = response.find(({ plugin_name: its }) => its === 'ordered')!;
    expect(fields.map(({ name }) => name)).toEqual(names);
    expect(text).toBe(`[[ordered]]\n${names.map((name) => `The ${name}: {${name}}`).join('\n')}`);
    const { body } = await ada.ask('GET', `${mine}/${id}`);
    expect(JSON.stringify((body['fields'] as { properties: object }).properties)).toBe(JSON.stringify(properties));
  });

  test('shows a text as one line, unless its schema says that it is long', async () => {
    const properties = {
      any: { type: 'string' },
      short: { type: 'string', maxLength: 500 },
      long: { type: 'string', maxLength: 501 },
      list: { type: 'array', items: { type: 'string' } },
    };
    await made({ ...parrot, plugin_name: 'lines', template: '{{any}} {{short}} {{long}} {{list}}', fields: { type: 'object', properties } });
    const { response } = (await ada.ask('POST', '/server/get-plugins')).body as {
      response: { plugin_name: string; fields: { name: string; type: string }[] }[];
    };
    const { fields } = response.find(({ plugin_name: its }) => its === 'lines')!;
    expect(Object.fromEntries(fields.map(({ name: field, type }) => [field, type]))).toEqual({
      any: 'text',
      short: 'text',
      long: 'textarea',
      list: 'textarea',
    });
  });
});

test(proves('N-01', 'no field of a request, in whatever depth, chooses where the key of a provider goes'), { timeout: long }, async () => {
  site.answer((_, response) => response.writeHead(200).end('{}'));
  const evil = address('/v1');
  const fields = { api_base: evil, base_url: evil, baseUrl: evil, host: evil, endpoint: evil, url: evil, 'x-portkey-custom-host': evil };
  const deep = { ...fields, a: { ...fields, b: { ...fields, c: { ...fields, d: { ...fields, e: fields } } } } };
  const messages = [{ role: 'user', content: 'hello', ...fields }];
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {}, ...fields }, ...fields }, ...fields };
  const standard = '/server/chatcompat/v1';
  const model = 'gpt-4o-mini';
  const requests: readonly (readonly [string, object])[] = [
    [`${standard}/chat/completions`, { model, messages, tools: [tool], metadata: fields, ...deep }],
    [`${standard}/responses`, { model, input: 'hello', metadata: fields, ...deep }],
    [`${standard}/embeddings`, { model: 'text-embedding-3-small', input: 'hello', ...deep }],
    [`${standard}/audio/speech`, { model, input: 'hello', voice: 'alloy', ...deep }],
    ['/server/messages/v1/messages', { model, max_tokens: 5, messages, ...deep }],
    ['/server/gencompat/v1beta/models/flash:generateContent', { contents: [{ role: 'user', parts: [{ text: 'hello' }] }], ...deep }],
    ['/server/query', { model, message: 'hello', tools: [tool], variables: fields, ...deep }],
    ['/server/get-text-to-speech', { model, text: 'hello', ...deep }],
    ['/server/execute-plugin', { model, plugin_name: 'rewrite', plugin_values: { text: 'hello' }, request: { method: 'GET', url: evil }, ...deep }],
    ['/server/execute-plugin', { model, plugin_name: 'rewrite', plugin_values: { text: 'hello', ...fields } }],
  ];
  for (const [path, body] of requests) {
    const answer = await ada
      .ask('POST', path, body, { headers: { 'x-portkey-custom-host': evil, 'x-base-url': evil, 'x-dragoman-base-url': evil } })
      .catch(() => undefined);
    expect([path, answer?.status ?? 200]).toEqual([path, expect.toBeOneOf([200, 400, 404, 501, 502])]);
  }
  expect(site.hits).toBe(0);
  expect(upstream.requests.length).toBeGreaterThan(4);
});

describe('a call over HTTP', () => {
  test('is made as it is declared, with values in their places, and shows what its pointer points to', async () => {
    says('application/json', '{"data":[{"name":"heron","a/b":{"c":1}}]}');
    await made({
      plugin_name: 'birds',
      kind: 'http',
      request: {
        method: 'GET',
        url: address('/birds/{{kind}}'),
        query: { q: 'a {{kind}}', limit: '{{limit}}' },
        headers: { 'X-Kind': '{{kind}}' },
        answer: '/data/0/name',
      },
      fields: { type: 'object', properties: { kind: { type: 'string' }, limit: { type: 'integer' } }, required: ['kind'] },
    });
    expect((await run('birds', { kind: 'a/../b?c#d' })).body['message']).toBe('heron');
    expect(site.requests[0]).toMatchObject({ method: 'GET', url: '/birds/a%2F..%2Fb%3Fc%23d?q=a+a%2F..%2Fb%3Fc%23d', headers: { 'x-kind': 'a/../b?c#d' } });
    for (const kind of ['..', '.', '', 'x\r\nX-Evil: 1']) expect([kind, (await run('birds', { kind })).status]).toEqual([kind, 400]);
    expect(site.requests).toHaveLength(1);
  });

  test('carries no credential of ours', async () => {
    says('text/plain', 'done');
    await made({
      plugin_name: 'poster',
      kind: 'http',
      request: { method: 'POST', url: address('/x'), body: { text: '{{text}}', n: '{{n}}', list: ['{{text}}!'] } },
      fields: { type: 'object', properties: { text: { type: 'string' }, n: { type: 'number' } } },
    });
    expect((await run('poster', { text: '"}', n: 5 })).body['message']).toBe('done');
    expect((await run('poster', { text: 'a' })).status).toBe(200);
    expect(bodies.map((body) => JSON.parse(body) as unknown)).toEqual([
      { text: '"}', n: 5, list: ['"}!'] },
      { text: 'a', list: ['a!'] },
    ]);
    expect(JSON.stringify(site.requests.map(({ headers }) => headers))).not.toContain(ada.key);
    expect(Object.keys(site.requests[0]!.headers)).not.toContain('authorization');
  });

  test('reaches no inner address, whatever its author or a redirect says', async () => {
    const inner = ['http://127.0.0.1:1/', `http://inner.example:${site.port}/`, 'http://[::1]/', 'http://169.254.169.254/latest', 'http://2130706433/'];
    for (const [at, url] of inner.entries()) {
      await made({ plugin_name: `inner-${at}`, kind: 'http', request: { method: 'GET', url } });
      const { status, body } = await run(`inner-${at}`);
      expect([url, status, body['message']]).toEqual([url, 502, 'The address of the plugin cannot be fetched, or what is there is not text.']);
    }
    site.answer((_, response) => response.writeHead(302, { location: `http://inner.example:${site.port}/` }).end());
    await made({ plugin_name: 'redirected', kind: 'http', request: { method: 'GET', url: address('/') } });
    expect((await run('redirected')).status).toBe(502);
    expect(site.requests).toHaveLength(1);
  });

  test('says why it got nothing from an address that answers', async () => {
    const answers: readonly (readonly [number, Record<string, string>, string])[] = [
      [503, {}, 'It answered 503.'],
      [200, { 'content-type': 'image/png' }, 'It is of a type that is not wanted.'],
      [200, { 'content-type': 'text/plain', 'content-length': '2000000' }, 'It is too large.'],
      [302, { location: address('/again') }, 'It was redirected too often.'],
    ];
    for (const method of ['GET', 'POST', 'PUT']) {
      await made({ plugin_name: `asker-${method.toLowerCase()}`, kind: 'http', request: { method, url: address('/x') } });
      for (const [status, headers, why] of answers.slice(0, method === 'PUT' ? 2 : method === 'POST' ? 3 : 4)) {
        site.answer((_, response) => response.writeHead(status, headers).end());
        const { body } = await run(`asker-${method.toLowerCase()}`);
        expect([method, status, body['message']]).toEqual([method, status, `The plugin got nothing from its address. ${why}`]);
      }
    }
  });

  test('is made of an operation of an OpenAPI document, also by its address', async () => {
    const document = {
      openapi: '3.1.0',
      servers: [{ url: address('/v1') }],
      paths: {
        '/birds/{id}': {
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          post: {
            operationId: 'saveBird',
            parameters: [{ $ref: '#/components/parameters/dry' }],
            requestBody: {
              required: true,
              content: { 'application/json': { schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } } },
            },
          },
        },
      },
      components: { parameters: { dry: { name: 'dry-run', in: 'query', schema: { type: 'boolean' } } } },
    };
    says('application/json', JSON.stringify(document));
    await made({ plugin_name: 'saved', kind: 'http', request: { openapi: document, operationId: 'saveBird' } });
    await made({ plugin_name: 'saved-too', kind: 'http', request: { openapi: address('/openapi.json'), operationId: 'saveBird' } });
    says('text/plain', 'saved');
    bodies.length = 0;
    for (const name of ['saved', 'saved-too']) expect((await run(name, { id: '7', name: 'heron', dry_run: true })).body['message']).toBe('saved');
    expect(site.requests.slice(-2).map(({ method, url }, at) => [method, url, bodies[at]])).toEqual(
      Array.from({ length: 2 }, () => ['POST', '/v1/birds/7?dry-run=true', '{"name":"heron"}']),
    );
    expect((await run('saved', { id: '7' })).status).toBe(400);
  });

  test.each([
    [{ method: 'GET', url: 'ftp://a.example/' }, 'request.url'],
    [{ method: 'GET', url: 'https://{{host}}/' }, 'request.url'],
    [{ method: 'GET', url: 'https://user:pass@a.example/' }, 'request.url'],
    [{ method: 'GET', url: 'https://a.example/{{secret.KEY}}' }, 'request.url'],
    [{ method: 'GET', url: 'https://a.example/?q=1' }, 'request.url'],
    [{ method: 'GET', url: 'https://a.example/', headers: { Host: 'b' } }, 'request.headers.Host'],
    [{ method: 'GET', url: 'https://a.example/', body: 'x' }, 'request.body'],
    [{ method: 'TRACE', url: 'https://a.example/' }, 'request.method'],
    [{ url: 'https://a.example/' }, 'request.method'],
    [{ openapi: {}, operationId: 'x' }, 'openapi'],
    [{ openapi: { paths: {} }, operationId: 'x' }, 'operationId'],
    [{ openapi: { paths: {} } }, 'operationId'],
    [{ method: 'GET', url: 'https://a.example/', more: 1 }, 'request.more'],
  ])('%j is refused with 400 and the name of the field', async (request, field) => {
    const { status, body } = await ada.ask('POST', mine, { plugin_name: 'bad', title: 'x', kind: 'http', request });
    expect([status, body['message']]).toEqual([400, expect.stringContaining(field)]);
  });

  test.each([
    [{ headers: { 'X-Key': '{{secret.KEY}}' } }, 400],
    [{ query: { key: 'a {{secret.KEY}}' } }, 400],
    [{ method: 'POST', body: { a: ['{{secret.KEY}}'] } }, 400],
    [{ headers: { '{{secret.KEY}}': 'a' } }, 400],
    [{ headers: { 'X-Key': '{{secret.KEY}}' }, url: 'https://a.example/' }, 201],
    [{ headers: { 'X-Key': 'a' } }, 201],
  ])('%j with an address without TLS is refused where it uses secrets, also of an OpenAPI document', async (more, status) => {
    const name = () => `plain-${Math.random().toString(36).slice(2)}`;
    const request = { method: 'GET', url: 'http://a.example/', ...more };
    const answer = await ada.ask('POST', mine, { plugin_name: name(), title: 'x', kind: 'http', request });
    expect([answer.status, status === 400 ? answer.body['message'] : '']).toEqual([status, expect.stringContaining(status === 400 ? 'request.url' : '')]);
    if (!('headers' in more)) return;
    const openapi = { openapi: '3.1.0', servers: [{ url: request.url }], paths: { '/a': { get: { operationId: 'a' } } } };
    const declared = { openapi, operationId: 'a', headers: more.headers };
    expect((await ada.ask('POST', mine, { plugin_name: name(), title: 'x', kind: 'http', request: declared })).status).toBe(status);
  });

  test('has the secrets of its owner filled in, whoever runs it; one that there is not is refused, and its place is never sent', async () => {
    const id = await made({
      plugin_name: 'secretive',
      kind: 'http',
      request: { method: 'GET', url: address('/'), headers: { 'X-Key': 'key {{secret.KEY}}' } },
    });
    expect(await run('secretive')).toMatchObject({ status: 400, body: { message: expect.stringContaining('KEY') as string } });
    expect(site.requests).toEqual([]);
    await ada.ask('POST', '/server/mine/secrets', { name: 'KEY', value: 'of-ada' });
    await bob.ask('POST', '/server/mine/secrets', { name: 'KEY', value: 'of-bob' });
    await share(id);
    says('text/plain', 'hello');
    for (const who of [ada, bob]) expect((await run('secretive', {}, {}, who)).status).toBe(200);
    expect(site.requests.map(({ headers }) => headers['x-key'])).toEqual(['key of-ada', 'key of-ada']);
  });

  test.each(['GET', 'POST', 'PUT'])('an answer to %s is read by its charset, whatever the case of its type', async (method) => {
    site.answer((_request, response) => response.setHeader('content-type', 'Text/Plain; Charset=ISO-8859-1').end(Buffer.from('Größe', 'latin1')));
    const plugin_name = `charset-${method}`;
    await made({ plugin_name, kind: 'http', request: { method, url: address('/') } });
    expect((await run(plugin_name)).body).toMatchObject({ message: 'Größe' });
    const code = `export default async ({ fetch }) => (await fetch('${address('/')}', { method: '${method}' })).text`;
    await made({ plugin_name: `${plugin_name}-script`, kind: 'script', script: { code, hosts: [address('')] } });
    expect((await run(`${plugin_name}-script`)).body).toMatchObject({ message: 'Größe' });
  });

  test.each(['PUT', 'PATCH', 'DELETE'])('sends %s too; a redirect of it is not followed', async (method) => {
    const name = method.toLowerCase();
    await made({
      plugin_name: name,
      kind: 'http',
      request: { method, url: address('/{{thing}}'), ...(method === 'DELETE' ? {} : { body: { n: '{{thing}}' } }) },
    });
    says('text/plain', 'done');
    const answer = await run(name, { thing: 'a b' });
    expect([answer.status, answer.body['message']]).toEqual([200, 'done']);
    expect(bodies).toEqual([method === 'DELETE' ? '' : '{"n":"a b"}']);
    site.answer((_, response) => void response.writeHead(307, { location: address('/elsewhere') }).end());
    expect((await run(name, { thing: 'b' })).status).toBe(502);
    expect(site.requests.map(({ method: sent, url }) => [sent, url])).toEqual([
      [method, '/a%20b'],
      [method, '/b'],
    ]);
  });
});

describe('a script', () => {
  const script = async (name: string, code: string, hosts: readonly string[] = [], by = ada) =>
    made({ plugin_name: name, kind: 'script', script: { code, hosts } }, by);

  test('gives text or JSON, and asks models, each call booked as a step of its request', async () => {
    await script(
      'counter',
      'export default async ({ values, llm }) => ({ n: values.n + 1, said: await Promise.all([llm("Say exactly: one"), llm({ prompt: "Say exactly: two", model: "built-in" })]) })',
    );
    const answer = await run('counter', { n: 1 });
    expect(JSON.parse(answer.body['message'] as string)).toEqual({ n: 2, said: ['one', 'two'] });
    const logged = (): Promise<object> => loggedAs(server, answer.headers.get('x-request-id')!);
    const steps = [{ end: 'completed', model: 'built-in' }]; // the two are booked one by one
    await expect.poll(logged, { timeout: 30_000 }).toMatchObject({ end: 'completed', model: 'built-in', steps });
  });

  test('whose answer is no JSON is told why', async () => {
    await script('ring', 'export default () => { const ring = {}; ring.ring = ring; return ring; }');
    expect(await run('ring')).toMatchObject({ status: 422, body: { response: expect.stringContaining('circular') as string } });
  });

  test('searches datasets, booked under the application and the tags of its request', async () => {
    const dataset = (await ada.ask('POST', '/user/add-dataset', { dataset: 'ponds' })).body['dataset'] as string;
    expect((await ada.ask('POST', '/server/train', { content: 'The heron lives at the north pond.', force_dataset: dataset })).status).toBe(200);
    await script('finder', 'export default async ({ search }) => (await search("Where does the heron live?")).map(({ text }) => text)');
    const headers = { 'x-app-name': 'desk', 'x-dragoman-tags': 'case=finder' };
    const answer = await ada.ask('POST', '/server/execute-plugin', { plugin_name: 'finder', plugin_values: {}, content: '' }, { headers });
    expect([answer.status, answer.body['message']]).toEqual([200, expect.stringContaining('heron')]);
    const booked = async () => {
      const { items } = (await ada.ask('GET', '/server/mine/logs?tag=case:finder')).body as { items: { app: string; model: string }[] };
      return items.map(({ app, model }) => `${app} ${model}`);
    };
    await expect.poll(booked).toContain('desk built-in-embedding');
    expect((await ada.ask('DELETE', '/server/dataset', { dataset })).status).toBe(200);
  });

  test('fetches from the hosts that it declares, and from no others', async () => {
    says('application/json', '{"bird":"heron"}');
    await script('fetcher', 'export default async ({ fetch, values }) => JSON.parse((await fetch(values.url)).text).bird', [`http://api.example:${site.port}`]);
    expect((await run('fetcher', { url: address('/a') })).body['message']).toBe('heron');
    for (const url of ['http://other.example/', `http://api.example.evil.example:${site.port}/`, 'http://127.0.0.1/', 'file:///etc/passwd', ''])
      expect([url, (await run('fetcher', { url })).status]).toEqual([url, 422]);
    expect(site.requests).toHaveLength(1);
  });

  test('follows a redirect to the hosts that it declares, and to no others', async () => {
    await script('follower', 'export default async ({ fetch, values }) => (await fetch(values.url)).text', [`http://api.example:${site.port}`]);
    site.answer((request, response) => {
      if (request.url === '/here') response.writeHead(302, { location: '/there' }).end();
      else if (request.url === '/away') response.writeHead(302, { location: `http://other.example:${site.port}/there` }).end();
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('found');
    });
    expect((await run('follower', { url: address('/here') })).body['message']).toBe('found');
    expect((await run('follower', { url: address('/away') })).status).toBe(422);
    expect(site.requests.map(({ url }) => url)).toEqual(['/here', '/there', '/away']);
  });

  test('asks two models at once, and each answer is booked for the provider that gave it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.script(talkative(5, promise));
    site.answer((_request, response) => {
      resolve();
      response.setHeader('content-type', 'text/plain').end('go on');
    });
    const both = `const slow = llm({ prompt: 'hi', model: 'gpt-4o-mini' }); await llm({ prompt: 'Say exactly: quick', model: 'built-in' })`;
    await script('double', `export default async ({ llm, fetch }) => { ${both}; await fetch('${address('/')}'); return slow; }`, [
      `http://api.example:${site.port}`,
    ]);
    const { headers, body } = await run('double');
    expect(body['message']).toBe('On and on.');
    const rows = async () => {
      const { steps = [], ...first } = (await ada.ask('GET', `/server/mine/logs/${headers.get('x-request-id')}`)).body as { steps?: readonly object[] };
      return [first, ...steps];
    };
    const of = (model: string, provider: string) => expect.objectContaining({ model, provider, tries: [expect.objectContaining({ provider })] }) as unknown;
    await expect.poll(rows).toEqual([of('gpt-4o-mini', 'fake'), of('built-in', 'built-in')]);
  });

  test('fetches at most 50 times a run', async () => {
    says('text/plain', 'x');
    const code = 'export default async ({ fetch, values }) => { let n = 0; for (; n < values.n; n++) await fetch(values.url); return n; }';
    await script('busy', code, [`http://api.example:${site.port}`]);
    expect((await run('busy', { url: address('/a'), n: 50 })).body['message']).toBe('50');
    const { status, body } = await run('busy', { url: address('/a'), n: 51 });
    expect([status, body['message'], site.requests.length]).toEqual([422, expect.stringContaining('at most 50 times'), 100]);
  });

  test("searches under the rights of who runs it; another's script that reaches hosts does not", async () => {
    const code = 'export default async ({ search }) => (await search("heron", { datasets: "all" })).length';
    await share(await script('seeker', code));
    const spying = await script('spy', code, ['https://evil.example']);
    await share(spying);
    expect((await run('seeker', {}, {}, bob)).body['message']).toBe('0');
    expect((await run('spy')).body['message']).toBe('0');
    const refused = await run('spy', {}, {}, bob);
    expect([refused.status, refused.body['message']]).toEqual([422, expect.stringContaining('does not search your datasets')]);
  });

  test.each([
    ['P-12', 'typeof process + typeof require + typeof globalThis.process + typeof WebAssembly', 'undefinedundefinedundefinedundefined'],
    ['P-12', '(() => { try { return Function("return typeof process")() } catch (e) { return "refused" } })()', 'undefined'],
    [
      'P-12',
      '(async () => Object.getPrototypeOf(async function* () {}).constructor("return this.process?.env")())() && typeof Error.prepareStackTrace',
      'undefined',
    ],
    ['P-12', '(() => { try { null.x } catch (e) { return typeof e.constructor.constructor("return this")().process } })()', 'undefined'],
    ['P-12', 'Object.keys(globalThis).length < 5', 'true'],
  ] as const)('%s: %s has nothing of the machine', async (_, code, found) => {
    const name = `escape-${Math.random().toString(36).slice(2)}`;
    await script(name, `export default () => ${code}`);
    expect((await run(name)).body['message']).toBe(found);
  });

  test(proves(['P-12', 'P-13'], 'ends with a stated reason, within its limits, whatever it does'), { timeout: long }, async () => {
    const bombs: readonly (readonly [code: string, reason: string])[] = [
      ['() => { for (;;) {} }', '5 seconds'],
      ['() => { const a = []; for (;;) a.push(new Array(10000).fill(7)); }', 'memory'],
      ['() => "x".repeat(2 ** 29)', 'memory'],
      ['() => { const f = () => f() + 1; return f(); }', 'stack'],
      ['() => "x".repeat(2_000_000)', '1 MB'],
      ['() => new Promise(() => {})', 'never comes'],
      ['() => { throw { message: "boo" } }', 'boo'],
      ['() => { throw { get message() { throw 1 } } }', 'thrown'],
      ['async () => import("node:fs")', 'node:fs'],
      ['({ llm }) => Promise.all(Array.from({ length: 100 }, () => llm("a")))', 'Too many calls'],
      ['5', 'function'],
    ];
    const began = performance.now();
    for (const [at, [code, reason]] of bombs.entries()) {
      await script(`bomb-${at}`, `export default ${code}`);
      const { status, body } = await run(`bomb-${at}`);
      expect([code, status, body['message']]).toEqual([code, 422, expect.stringContaining(reason)]);
    }
    expect(performance.now() - began).toBeLessThan(90_000);
    const people = await Promise.all(Array.from({ length: 4 }, () => person(all)));
    for (const by of people) await script('endless', 'export default () => { for (;;) {} }', [], by);
    const looping = people.map(async (by) => {
      const start = performance.now();
      return [(await run('endless', {}, {}, by)).status, performance.now() - start < 20_000];
    });
    const waited = performance.now();
    expect((await bob.ask('POST', '/server/query', { message: 'Say exactly: still here', model: 'built-in' })).body['message']).toBe('still here');
    expect(performance.now() - waited).toBeLessThan(4500); // the scripts take five seconds
    expect(await Promise.all(looping)).toEqual(people.map(() => [422, true]));
    await script('after-bombs', 'export default () => "alive"');
    expect((await run('after-bombs')).body['message']).toBe('alive');
  });

  test('ends with its request: who leaves waits for nothing', async () => {
    await script('endless-too', 'export default () => { for (;;) {} }');
    const leaving = new AbortController();
    const sent = fetch(`${server.url}/server/execute-plugin`, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json' },
      body: '{"plugin_name":"endless-too","plugin_values":{}}',
      signal: leaving.signal,
    });
    setTimeout(() => leaving.abort(), 300);
    await expect(sent).rejects.toThrow();
    const began = performance.now();
    await run('counter', { n: 1 });
    expect(performance.now() - began).toBeLessThan(4500); // the script that nobody waits for would take five seconds
  });
});

test('a plan that is spent runs no plugin of any kind', async () => {
  const poor = await newMember(server, { monthlyTokens: 0 });
  const ask = visitorsOf(server).as(poor.keys[0]!);
  const by = { ...bob, ask };
  await made({ ...parrot, plugin_name: 'a-prompt' }, by);
  await made({ plugin_name: 'a-call', kind: 'http', request: { method: 'GET', url: address('/') } }, by);
  await made({ plugin_name: 'a-script', kind: 'script', script: { code: 'export default () => 1' } }, by);
  for (const name of ['a-prompt', 'a-call', 'a-script', 'rewrite'])
    expect([
      name,
      (await run(name, name === 'a-prompt' ? { words: 'a' } : name === 'rewrite' ? { text: 'a' } : {}, { model: 'gpt-4o-mini' }, by)).status,
    ]).toEqual([name, 429]);
  expect(site.requests).toEqual([]);
  expect(upstream.requests).toEqual([]);
});

onBothDatabases('plugins of users', ({ place }) => {
  test('are made, listed, changed, exported, imported and deleted', { timeout: long }, async () => {
    const here = await visited(await place());
    const [eve, dan] = [await person(here), await person(here)];
    const first = await eve.ask('POST', mine, parrot);
    const id = first.body['id'] as number;
    expect(first).toMatchObject({ status: 201, body: { ...parrot, id: 11, description: '', category: '', file_mode: false, owner: eve.id, right: 'owner' } });
    expect((await eve.ask('GET', mine)).body).toEqual({ items: [first.body], nextCursor: null });
    expect((await eve.ask('POST', mine, { ...parrot, plugin_name: 'PARROT' })).status).toBe(409);
    expect((await eve.ask('POST', mine, { ...parrot, plugin_name: 'Summarise' })).status).toBe(409);
    const changed = await eve.ask('PUT', `${mine}/${id}`, { ...parrot, title: 'Grey parrot' });
    expect(changed).toMatchObject({ status: 200, body: { id, title: 'Grey parrot' } });

    const file = (await eve.ask('GET', `${mine}/${id}/export`)).body;
    expect(file).toMatchObject({ format: 'dragoman-plugin', version: 1, plugin: { plugin_name: 'parrot', template: parrot.template } });
    const imported = await dan.ask('POST', `${mine}/import`, file);
    expect(imported).toMatchObject({ status: 201, body: { title: 'Grey parrot', owner: dan.id } });
    expect((await dan.ask('POST', `${mine}/import`, { ...file, version: 2 })).status).toBe(400);

    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PUT', '', parrot],
      ['DELETE', '', undefined],
      ['GET', '/export', undefined],
      ['GET', '/grants', undefined],
    ] as const)
      expect([method, path, (await dan.ask(method, `${mine}/${id}${path}`, body)).status]).toEqual([method, path, 404]);
    expect((await here.admin('GET', `${mine}?owner=${eve.id}`)).body).toEqual({ items: [changed.body], nextCursor: null });
    expect((await dan.ask('GET', `${mine}?owner=${eve.id}`)).status).toBe(404);
    expect(await eve.ask('DELETE', `${mine}/${id}`)).toMatchObject({ status: 200, body: changed.body });
    expect((await eve.ask('GET', `${mine}/${id}`)).status).toBe(404);
  });

  test('are used as their grants say; who may only use one does not see what is in it', { timeout: long }, async () => {
    const here = await visited(await place());
    const [eve, dan] = [await person(here), await person(here)];
    const id = (await eve.ask('POST', mine, { ...parrot, template: 'Say exactly: a secret recipe' })).body['id'] as number;
    const ask = async () => (await dan.ask('POST', '/server/execute-plugin', { plugin_name: 'parrot', plugin_values: {} })).status;
    const grant = (items: readonly object[]) => eve.ask('PUT', `${mine}/${id}/grants`, { items });
    expect(await ask()).toBe(404);
    await grant([{ user: dan.email, right: 'read' }]);
    expect(await ask()).toBe(200);
    const seen = await dan.ask('GET', `${mine}/${id}`);
    expect([seen.status, JSON.stringify(seen.body)]).toEqual([200, expect.not.stringContaining('recipe')]);
    expect(JSON.stringify((await dan.ask('POST', '/server/get-plugins')).body)).not.toContain('recipe');
    for (const [method, path] of [
      ['PUT', ''],
      ['DELETE', ''],
      ['GET', '/export'],
      ['GET', '/grants'],
    ] as const)
      expect([method, path, (await dan.ask(method, `${mine}/${id}${path}`, method === 'PUT' ? parrot : undefined)).status]).toEqual([method, path, 403]);
    await grant([{ user: dan.email, right: 'edit' }]);
    expect((await dan.ask('PUT', `${mine}/${id}`, parrot)).status).toBe(200);
    const secretive = {
      plugin_name: 'parrot',
      title: 'x',
      kind: 'http',
      request: { method: 'GET', url: 'https://evil.example/', headers: { a: '{{secret.KEY}}' } },
    };
    expect((await dan.ask('PUT', `${mine}/${id}`, secretive)).status).toBe(403);
    await grant([]);
    expect(await ask()).toBe(404);
  });

  test('are changed in where they reach by their owners alone', { timeout: long }, async () => {
    const here = await visited(await place());
    const [eve, dan] = [await person(here), await person(here)];
    const shared = async (plugin: object) => {
      const { id, fields } = (await eve.ask('POST', mine, { title: 'x', ...plugin })).body as { id: number; fields?: object };
      await eve.ask('PUT', `${mine}/${id}/grants`, { items: [{ user: dan.email, right: 'admin' }] });
      return { at: `${mine}/${id}`, whole: { title: 'x', ...plugin, ...(fields ? { fields } : {}) } };
    };
    const request = { method: 'POST', url: 'https://a.example/', headers: { b: '1', a: '2' }, body: { z: '{{words}}', a: 1 } };
    const script = { code: 'export default () => 1', hosts: ['https://a.example'] };
    const prompt = await shared({ ...parrot, plugin_name: 'a-prompt' });
    const http = await shared({ plugin_name: 'a-call', kind: 'http', request });
    const run = await shared({ plugin_name: 'a-script', kind: 'script', script });
    for (const [{ at, whole }, change, field] of [
      [prompt, { kind: 'http', template: undefined, request }, 'kind'],
      [prompt, { kind: 'script', template: undefined, script }, 'kind'],
      [http, { request: { ...request, url: 'https://evil.example/' } }, 'request'],
      [http, { request: { ...request, headers: {} } }, 'request'],
      [http, { fields: { type: 'object', properties: { words: { type: 'string', default: 'x' } } } }, 'fields'],
      [http, { kind: 'prompt', request: undefined, template: 'a {{words}}' }, 'kind'],
      [run, { script: { ...script, code: 'export default ({ search }) => search("a")' } }, 'script'],
      [run, { script: { ...script, hosts: [...script.hosts, 'https://evil.example'] } }, 'script'],
      [run, { script: { code: script.code } }, 'script'],
    ] as const) {
      const { status, body } = await dan.ask('PUT', at, { ...whole, ...change });
      expect([change, status, body['message']]).toEqual([change, 403, expect.stringMatching(new RegExp(`^${field} `))]);
    }
    for (const [{ at, whole }, change] of [
      [prompt, { template: 'Now {{other}}', fields: undefined }],
      [http, { title: 'A call', description: 'It calls.', category: 'Calls' }],
      [run, { title: 'A script' }],
    ] as const)
      expect(await dan.ask('PUT', at, { ...whole, ...change })).toMatchObject({ status: 200, body: JSON.parse(JSON.stringify(change)) as object });
    expect((await eve.ask('PUT', run.at, { ...run.whole, script: { ...script, hosts: [] } })).status).toBe(200);
  });

  test.each([
    [{ ...parrot, plugin_name: 'a b' }, 'plugin_name'],
    [{ ...parrot, title: '' }, 'title'],
    [{ ...parrot, kind: 'magic' }, 'kind'],
    [{ ...parrot, template: undefined }, 'template'],
    [{ ...parrot, script: { code: 'x' } }, 'script'],
    [{ ...parrot, template: '{{secret.KEY}}' }, 'template'],
    [{ ...parrot, template: 'x'.repeat(100_001) }, 'template'],
    [{ ...parrot, fields: { type: 'array' } }, 'fields'],
    [{ ...parrot, fields: { type: 'object', properties: {} } }, 'words'],
    [{ ...parrot, fields: { type: 'object', properties: { 'a b': {} } } }, 'a b'],
    [{ ...parrot, fields: { type: 'object', properties: { words: { type: 'foo' } } } }, 'fields.properties.words.type'],
    [{ ...parrot, fields: { type: 'object', properties: { words: { pattern: '(a)\\1' } } } }, 'fields.properties.words.pattern'],
    [{ ...parrot, fields: { type: 'object', properties: { words: {} }, required: ['word'] } }, 'fields.required'],
    [{ ...parrot, more: 1 }, 'more'],
    [{ plugin_name: 'x', title: 'x', kind: 'script', script: { code: 'x', hosts: ['evil'] } }, 'hosts'],
  ])('%j is refused with 400 and the name of the field', { timeout: long }, async (body, field) => {
    const answer = await ada.ask('POST', mine, body);
    expect([answer.status, answer.body['message']]).toEqual([400, expect.stringContaining(field)]);
  });
});
