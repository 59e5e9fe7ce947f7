/* What users are shown of what was asked and answered, and who else is. */
import { expect, onTestFinished, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { ok, startUpstream } from '../../support/fakes/upstream/index.ts';
import { chat } from '../../support/server.ts';
import { person, visited, type Asker } from './visitors.ts';

interface Entry {
  readonly [member: string]: unknown;
  readonly id: number;
  readonly prompt: string;
  readonly response: string;
}

const logsOf = async (ask: Asker, fields?: object) => (await ask('POST', '/user/get-user-logs', fields)).body['response'] as Entry[];
const says = (text: string, more: object = {}) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], ...more });
const soon = { timeout: 20_000 };

onBothDatabases('the prompt log', (database) => {
  async function gateway(yaml = '') {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    return { ...(await visited(await database.place(), { upstream: upstream.url, yaml })), upstream };
  }

  test(
    proves('user.get-user-logs', 'each call is in the log of its user, newest first, with what was asked, what was answered and what it cost'),
    { timeout: 120_000 },
    async () => {
      const house = await gateway('  gemini-2.5-flash: { targets: [{ provider: built-in, model: built-in }] }\n');
      const ada = await person(house);
      const bob = await person(house);
      await ada.ask('POST', chat, says('What is the first question?'));
      await ada.ask('POST', '/server/gencompat/v1beta/models/gemini-2.5-flash:generateContent', {
        contents: [{ role: 'user', parts: [{ text: 'Repeat: second' }] }],
      });
      await ada.ask('POST', '/v1/messages', { ...says('third'), max_tokens: 50 });
      await ada.ask('POST', '/server/chatcompat/v1/responses', { model: 'gpt-4o-mini', input: 'fourth' });
      await ada.ask('POST', '/server/chatcompat/v1/embeddings', { model: 'built-in-embedding', input: ['fifth', 'sixth'] });
      await expect
        .poll(async () => (await logsOf(ada.ask)).map(({ prompt }) => prompt), soon)
        .toEqual(['fifth\nsixth', 'fourth', 'third', 'Repeat: second', 'What is the first question?']);
      const logs = await logsOf(ada.ask);
      expect(logs[4]).toEqual({
        id: expect.any(Number),
        user_id: ada.id,
        date_time: expect.stringMatching(/GMT$/),
        model: expect.any(String),
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        total_tokens: expect.any(Number),
        prompt: 'What is the first question?',
        response: 'You said: What is the first question?',
        prompt_length: 27,
        response_length: 37,
        prompt_truncated: false,
        response_truncated: false,
        teach: 'False',
        ip: '127.0.0.1',
      });
      expect(logs.map(({ response }) => response)).toEqual(['', 'You said: fourth', 'You said: third', expect.stringContaining('second'), expect.any(String)]);
      const ids = logs.map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted((a, b) => b - a));
      expect(await logsOf(ada.ask, { limit: 2 })).toEqual(logs.slice(0, 2));
      expect(await logsOf(ada.ask, { limit: 1000, before_id: ids[1] })).toEqual(logs.slice(2));
      expect((await ada.ask('GET', `/user/get-user-logs?limit=1&before_id=${ids[1]}`)).body['response']).toEqual(logs.slice(2, 3));
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      expect((await ada.ask('POST', '/user/get-user-logs', `before_id=${ids[1]}`, { headers })).body['response']).toEqual(logs.slice(2));
      expect(await logsOf(bob.ask, { user_id: ada.id })).toEqual([]);
      expect((await ada.ask('POST', '/user/get-user-logs', { limit: 0 })).status).toBe(400);
      expect((await ada.ask('POST', '/user/get-user-logs', { before_id: 'x' })).status).toBe(400);
    },
  );

  test('of long ones the first 2,000 characters are kept, of streams and of whole answers, and their lengths', { timeout: 120_000 }, async () => {
    const house = await gateway();
    const ada = await person(house);
    const long = 'A sentence of many words, again and again. '.repeat(200);
    house.upstream.script(ok({ text: long }), ok({ text: long }));
    await ada.ask('POST', chat, says(long));
    const stream = await fetch(house.server.url + chat, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json' },
      body: JSON.stringify(says('stream', { stream: true })),
    });
    await stream.text();
    await expect.poll(async () => (await logsOf(ada.ask)).length, soon).toBe(2);
    const [streamed, whole] = await logsOf(ada.ask);
    expect(whole).toMatchObject({ prompt: long.slice(0, 2000), prompt_length: long.length, prompt_truncated: true });
    for (const one of [streamed, whole]) expect(one).toMatchObject({ response: long.slice(0, 2000), response_truncated: true });
    expect(whole!['response_length']).toBe(long.length);
    expect(Math.abs((streamed!['response_length'] as number) - long.length)).toBeLessThan(long.length / 10);
  });

  test('of several texts the first 2,000 characters of all of them are kept, and the length of all', { timeout: 120_000 }, async () => {
    const house = await gateway('  omni: { kind: moderation, targets: [{ provider: fake, model: omni }] }\n');
    const ada = await person(house);
    const texts = ['a'.repeat(1500), 'b'.repeat(1500), 'c'.repeat(1500)];
    const kept = { prompt: `${texts[0]}\n${'b'.repeat(499)}`, prompt_length: 4502, prompt_truncated: true };
    await ada.ask('POST', '/server/chatcompat/v1/embeddings', { model: 'built-in-embedding', input: texts });
    await ada.ask('POST', '/v1/moderations', { model: 'omni', input: texts });
    await ada.ask('POST', chat, { model: 'gpt-4o-mini', messages: [{ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }] });
    await ada.ask('POST', '/v1/moderations', { model: 'omni', input: ['one', 'two'] });
    await expect.poll(async () => (await logsOf(ada.ask)).length, soon).toBe(4);
    const [short, ...long] = await logsOf(ada.ask);
    expect(short).toMatchObject({ prompt: 'one\ntwo', prompt_length: 7, prompt_truncated: false });
    for (const one of long) expect(one).toMatchObject(kept);
  });

  test('no character is cut in two', { timeout: 120_000 }, async () => {
    const house = await gateway();
    const ada = await person(house);
    const long = `a${'🦆'.repeat(1500)}`;
    house.upstream.script(ok({ text: long }));
    await ada.ask('POST', chat, says(long));
    await expect.poll(async () => (await logsOf(ada.ask)).length, soon).toBe(1);
    const kept = `a${'🦆'.repeat(999)}`;
    expect((await logsOf(ada.ask))[0]).toMatchObject({ prompt: kept, response: kept, prompt_length: 3001, response_length: 3001 });
  });

  test('texts to be spoken and texts to be judged are logged too', { timeout: 120_000 }, async () => {
    const house = await gateway('  omni: { kind: moderation, targets: [{ provider: fake, model: omni }] }\n');
    const ada = await person(house);
    expect((await ada.ask('POST', '/server/chatcompat/v1/audio/speech', { model: 'built-in-speech', input: 'Speak this', voice: 'slt' })).status).toBe(200);
    await ada.ask('POST', '/v1/moderations', { model: 'omni', input: 'Judge this' });
    await expect.poll(async () => (await logsOf(ada.ask)).map(({ prompt }) => prompt), soon).toEqual(['Judge this', 'Speak this']);
    for (const one of await logsOf(ada.ask)) expect(one).toMatchObject({ response: '', prompt_length: 10, prompt_truncated: false, ip: '127.0.0.1' });
  });

  test('a question about a dataset is logged with its answer, and not as what was looked up for it', { timeout: 120_000 }, async () => {
    const house = await gateway();
    const ada = await person(house);
    const dataset = (await ada.ask('POST', '/user/add-dataset', { dataset: 'canteen' })).body['dataset'];
    await ada.ask('POST', '/server/train', { content: 'The canteen opens at seven.', force_dataset: dataset });
    const answer = await ada.ask('POST', '/server/query', { message: 'When does the canteen open?', dataset, model: 'built-in' });
    await expect
      .poll(async () => (await logsOf(ada.ask)).find(({ model }) => model === 'built-in'), soon)
      .toMatchObject({ prompt: 'When does the canteen open?', response: answer.body['message'], ip: '127.0.0.1' });

    const addresses = async () => (await logsOf(ada.ask)).map(({ ip, teach }) => [teach, ip]);
    const local = '127.0.0.1';
    await expect.poll(addresses, soon).toEqual([
      ['False', local],
      ['False', local],
      ['True', local],
    ]);
    const form = new FormData();
    form.set('dataset', String(dataset));
    form.set('file', new Blob(['The kitchen closes at two.']), 'kitchen.txt');
    await fetch(`${house.server.url}/server/train-with-file`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
    await expect
      .poll(async () => (await addresses()).filter(([teach]) => teach === 'True'), soon)
      .toEqual([
        ['True', local],
        ['True', local],
      ]);

    await ada.ask('POST', '/server/execute-agent', { agent_id: 2, message: 'Say exactly: agent' });
    await ada.ask('POST', '/server/query', { message: 'Say exactly: research', mode: 'deep_agent' });
    await ada.ask('POST', '/server/train', { content: 'The canteen opens at eight.', summarize: true });
    await expect
      .poll(async () => (await logsOf(ada.ask)).filter(({ ip }) => ip !== '').map(({ prompt }) => prompt), soon)
      .toEqual(expect.arrayContaining(['Say exactly: agent', 'Say exactly: research', expect.stringMatching(/^Summarise .*eight\.$/s)]));
  });

  test('nobody but the user sees them, unless `bodies` is all: then administrators do, which is noted, and auditors never', { timeout: 120_000 }, async () => {
    const house = await gateway();
    const ada = await person(house);
    const auditor = await person(house, { role: 'auditor' });
    const asked = async (text: string) => {
      await ada.ask('POST', chat, says(text));
      await expect.poll(async () => (await logsOf(ada.ask))[0]?.prompt, soon).toBe(text);
      const { body } = await house.admin('GET', `/server/admin/logs?userId=${ada.id}&limit=1`);
      return (body['items'] as { requestId: string }[])[0]!.requestId;
    };
    const detail = async (ask: Asker, path: string) => {
      const { prompt, response } = (await ask('GET', path)).body;
      return { prompt, response };
    };
    const nothing = { prompt: undefined, response: undefined };
    const own = await asked('mine alone');
    const answer = (prompt: string) => ({ prompt, response: `You said: ${prompt}` });
    expect(await detail(ada.ask, `/server/mine/logs/${own}`)).toEqual(answer('mine alone'));
    expect(await detail(house.admin, `/server/admin/logs/${own}`)).toEqual(nothing);
    await house.server.change('bodies: all');
    const all = await asked('for all');
    expect(await detail(house.admin, `/server/admin/logs/${own}`)).toEqual(nothing);
    expect(await detail(house.admin, `/server/admin/logs/${all}`)).toEqual(answer('for all'));
    expect(await detail(auditor.ask, `/server/admin/logs/${all}`)).toEqual(nothing);
    expect((await logsOf(house.admin, { user_id: ada.id })).map(({ prompt }) => prompt)).toEqual(['for all', '']);
    const { body: trail } = await house.admin('GET', '/server/admin/audit?action=prompts.read');
    expect((trail['items'] as { target: object }[]).map(({ target }) => target)).toEqual([
      { kind: 'user', id: String(ada.id) },
      { kind: 'request', id: all },
    ]);
    await house.server.change('bodies: none');
    await ada.ask('POST', chat, says('not kept'));
    await expect.poll(async () => (await logsOf(ada.ask)).length, soon).toBe(3);
    expect((await logsOf(ada.ask))[0]).toMatchObject({ prompt: '', response: '', prompt_length: 8, response_length: 18, prompt_truncated: true });
  });
});
