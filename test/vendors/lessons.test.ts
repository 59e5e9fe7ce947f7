import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { ok, refusal, startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { administrate } from '../support/members.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** What a provider taught by refusing a request: seen by the operator, kept across restarts, forgotten on demand. */

interface ShownLesson {
  readonly id: number;
  readonly provider: string;
  readonly model: string;
  readonly wire: string;
  readonly fields: readonly string[];
  readonly until: string;
}

let upstream: Upstream;
let folder: string;
let server: TestServer;

const start = () => startTestServer({ folder, upstream: upstream.url });
beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-lessons-'));
  server = await start();
  onTestFinished(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
});
afterEach(() => upstream.reset());

const refusesEffort = () =>
  refusal(400, {
    message: "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
    code: 'unsupported_parameter',
  });
const ask = () => askFace(server, 'messages', { model: 'gpt-4o-mini', content: 'hi', stream: false, more: { output_config: { effort: 'high' } } });
const lessons = async () => (await administrate<{ items: readonly ShownLesson[] }>(server, 'GET', '/lessons')).items;
const efforts = () => upstream.requests.map(({ json }) => (json as { reasoning_effort?: string }).reasoning_effort);

async function taught() {
  upstream.script(refusesEffort());
  expect((await ask()).status).toBe(200);
  await expect.poll(lessons, { timeout: 30_000 }).toHaveLength(1);
}

describe('a field that a model refused', () => {
  test('is listed with its provider, model, wire and time, and in doctor and the description of the model', async () => {
    await taught();
    const [lesson] = await lessons();
    expect(lesson).toMatchObject({ provider: 'fake', model: 'gpt-4o-mini', wire: 'openai-chat', fields: ['reasoning_effort'] });
    const minutes = (Date.parse(lesson!.until) - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(58);
    expect(minutes).toBeLessThanOrEqual(60.1);
    const model = (await (await server.ask('/server/chatcompat/v1/models/gpt-4o-mini')).json()) as { dragoman: object };
    expect(model.dragoman).toMatchObject({ targets: [{ learned: { fields: ['reasoning_effort'] }, fields: { reasoning_effort: { fate: 'ignored' } } }] });
    const { items } = await administrate<{ items: readonly { name: string; state: string; says: string }[] }>(server, 'GET', '/doctor');
    expect(items).toContainEqual(
      expect.objectContaining({ name: 'model gpt-4o-mini of fake', state: 'ok', says: expect.stringContaining('refused reasoning_effort') as string }),
    );
  });

  test('stays listed when the model refuses another one later', async () => {
    await taught();
    const message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    upstream.script(refusal(400, { message, code: 'unsupported_parameter' }));
    expect((await ask()).status).toBe(200);
    await expect.poll(async () => (await lessons())[0]?.fields, { timeout: 30_000 }).toEqual(['reasoning_effort', 'max_tokens']);
  });

  test('is listed, too, where calls with tools now go to another API of the provider', async () => {
    const message = 'Function tools with reasoning_effort are not supported for gpt-4o-mini in /v1/chat/completions. Please use /v1/responses instead.';
    upstream.script(refusesEffort(), ok(), refusal(400, { message }));
    await ask();
    const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
    expect((await askFace(server, 'messages', { model: 'gpt-4o-mini', content: 'hi', stream: false, more: { tools } })).status).toBe(200);
    const model = (await (await server.ask('/server/chatcompat/v1/models/gpt-4o-mini')).json()) as { dragoman: object };
    expect(model.dragoman).toMatchObject({ targets: [{ learned: { fields: ['reasoning_effort', 'tools'], learned: { effort: false, refused: 'tools' } } }] });
  });

  test('is known after a restart and after a change of the settings, and to a second server: its first request is right', async () => {
    await taught();
    await server.close();
    server = await start();
    expect((await ask()).status).toBe(200);
    await server.change('routing: { cooldownSeconds: 0 }\n');
    expect((await ask()).status).toBe(200);
    expect(efforts()).toEqual(['high', undefined, undefined, undefined]);
  });

  test('is forgotten by an administrator, one or all, which the audit trail has', async () => {
    await taught();
    const [lesson] = await lessons();
    expect(await administrate(server, 'DELETE', `/lessons/${lesson!.id}`)).toEqual({ forgotten: 1 });
    expect(await lessons()).toEqual([]);
    upstream.reset();
    await taught();
    expect(efforts()).toEqual(['high', undefined]);
    expect(await administrate(server, 'DELETE', '/lessons')).toEqual({ forgotten: 1 });
    expect(await administrate(server, 'DELETE', '/lessons')).toEqual({ forgotten: 0 });
    await expect(administrate(server, 'DELETE', `/lessons/${lesson!.id}`)).rejects.toThrow();
    const { items } = await administrate<{ items: readonly { action: string }[] }>(server, 'GET', '/audit');
    expect(items.filter(({ action }) => /^lessons?\.forget$/.test(action))).toHaveLength(2);
  });

  test('is not learned from a refusal alone', async () => {
    upstream.script(refusesEffort(), refusal(400, { message: 'Something else is wrong.' }));
    expect((await ask()).status).toBe(400);
    await server.ask('/healthz');
    expect(await lessons()).toEqual([]);
    await ask();
    expect(efforts().at(-1)).toBe('high');
  });
});
