/* Texts that a database does not take, in what it stores: as fields of things, and as names in the books. */
import { expect, test } from 'vitest';
import { person, visitedTogether } from '../api/native/visitors.ts';
import { onBothDatabases } from '../support/databases.ts';
import { proves } from '../support/proves.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `providers: { any: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] } }\nmodels: { "*": { targets: [{ provider: any }] } }\n`,
}));

test(proves('I-21', '"*" answers for no name that the books could not hold, on any interface'), async () => {
  for (const model of ['\0', 'a\0b', '\ud800', 'a\nb', '\u001b[31m', '\u202e', 'modèle'])
    for (const [path, body] of [
      ['/server/query', { message: 'x', model }],
      ['/server/query_stream', { message: 'x', model }],
      ['/server/follow-up-questions', { message: 'x', model }],
      ['/server/train', { content: 'x', summarize: true, summarize_model: model }],
      ['/server/chatcompat/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] }],
      ['/server/chatcompat/v1/responses', { model, input: 'x' }],
      ['/server/messages/v1/messages', { model, max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }],
    ] as const)
      expect([model, path, (await server.ask(path, body)).status]).toEqual([model, path, 400]);
  expect(upstream.requests).toEqual([]);
});

const fields = (type: string) => ({ type: 'object', properties: { name: { type: 'string', description: type } } });
const agent = { name: 'Harbour', mode: 'single', instructions: 'Answer.' };
const plugin = { plugin_name: 'greet', title: 'Greet', kind: 'prompt', template: 'Hello {{name}}', fields: fields('whose') };

onBothDatabases('odd texts', (database) => {
  const together = visitedTogether(database);

  test.each([
    ['the first half of a character', 'a\ud800b'],
    ['the last half of a character', '\udc00'],
  ])(proves('I-07', '%s in what is stored as JSON is refused, naming the field'), async (_what, text) => {
    const ada = await person(together());
    const refused = async (method: string, path: string, body: unknown, field: string) => {
      const answer = await ada.ask(method, path, body);
      expect([path, answer.status, answer.body['message']]).toEqual([path, 400, `${field} must be a text without half of a surrogate pair.`]);
    };
    await refused('POST', '/server/mine/agents', { ...agent, instructions: text }, 'instructions');
    const { body } = await ada.ask('POST', '/server/mine/agents', agent);
    await refused('PUT', `/server/mine/agents/${String(body['id'])}`, { ...agent, variables: fields(text) }, 'variables.properties.name.description');
    await refused('POST', '/server/mine/plugins', { ...plugin, template: `${text} {{name}}` }, 'template');
    await refused('POST', '/server/mine/plugins', { ...plugin, fields: fields(text) }, 'fields.properties.name.description');
    const made = await ada.ask('POST', '/server/mine/plugins', plugin);
    await refused('PUT', `/server/mine/plugins/${String(made.body['id'])}`, { ...plugin, fields: fields(text) }, 'fields.properties.name.description');
    const exported = await ada.ask('GET', `/server/mine/plugins/${String(made.body['id'])}/export`);
    const file = JSON.parse(JSON.stringify(exported.body).replace('whose', JSON.stringify(text).slice(1, -1))) as object;
    const imported = await ada.ask('POST', '/server/mine/plugins/import', file);
    expect([imported.status, imported.body['message']]).toEqual([400, expect.stringContaining('half of a surrogate pair')]);
  });
});
