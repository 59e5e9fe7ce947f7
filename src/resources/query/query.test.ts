/* What is looked up for a question, with scripted passages, pages and models. */
import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import type { GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import { wholeAnswer } from '#core/generate';
import type { Passage, PassageSearch } from '#core/passages';
import { Permits } from '#core/permits';
import type { Model } from '#core/target';
import { Cancelled } from '#kit/async/client-left';
import { systemClock } from '#kit/async/clock';
import type { GivenAnswer } from '../given-answer.ts';
import type { QueryDeps } from './deps.ts';
import type { Completion } from './fields.ts';
import type { Asked } from './choices.ts';
import { followUp } from './follow-up.ts';
import { query } from './query.ts';

const caller: Caller = { userId: 7, email: 'ada@example.org', role: 'user', plan: 'free', teamIds: [], keyId: 1, keyName: 'k' };

const passage = (id: number, more: Partial<Passage> = {}): Passage => ({
  id,
  dataset: 'user_custom_7_birds_content',
  filename: 'birds.pdf',
  page: id,
  range: [10, 20],
  quote: `quote ${id}`,
  text: `Birds > text ${id}`,
  score: 1 / id,
  ranks: { lexical: id, vector: null, fused: id, rerank: null },
  ...more,
});

interface Scripted {
  readonly passages?: readonly Passage[];
  readonly answer?: string;
  readonly context?: number;
  readonly deps?: Partial<QueryDeps>;
  readonly rewording?: (call: GenerateCall) => Promise<string>;
}

function scripted({ passages = [], answer = 'It is so [1], and so [2, 9].', context, deps = {}, rewording }: Scripted) {
  const searches: PassageSearch[] = [];
  const calls: { readonly call: GenerateCall; readonly step: number; readonly signal: AbortSignal }[] = [];
  const kept: GivenAnswer[] = [];
  const model: Model = {
    name: 'm',
    kind: 'chat',
    targets: [],
    limits: context === undefined ? {} : { context },
    rate: { input: 1, output: 1 },
    created: 0,
    ownedBy: 'x',
  };
  const all: QueryDeps = {
    affords: async () => {},
    enters: async () => {},
    async *generate(call, { step, signal }) {
      calls.push({ call, step, signal });
      const text = rewording && step > 0 ? await rewording(call) : answer;
      const events: readonly GenerateEvent[] = [
        { type: 'started', model: 'm-1', ignored: [] },
        { type: 'text', candidate: 0, text },
        { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
      ];
      yield events;
    },
    waiting: { keep: () => Promise.resolve(true), take: () => Promise.resolve(undefined), over: async () => {} },
    deepRuns: { begin: () => Promise.resolve(7), find: () => Promise.resolve(undefined), answer: () => Promise.resolve() },
    models: () => ({ find: (name) => (name === 'm' ? model : undefined), list: () => [model], hasProviders: true }),
    defaults: () => ({ chat: 'm', followUp: 'm', rewording: rewording ? 'm' : undefined }),
    promptOf: () => Promise.resolve('You are kind.'),
    search(wanted) {
      searches.push(wanted);
      return Promise.resolve({ passages, vectorsDown: true, warnings: ['dataset: only words were searched'] });
    },
    convert: undefined,
    plugins: {
      run: () => Promise.resolve(undefined),
      callable: () => Promise.reject(new Error('Nobody asks for this.')),
      isThere: () => Promise.resolve(false),
      list: () => Promise.resolve([]),
    },
    countTokens: (texts) => Promise.resolve(texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0)),
    web: { search: undefined, read: () => Promise.resolve(undefined), failed: () => {} },
    keep: (one) => Promise.resolve(void kept.push(one)),
    leadingNewlines: () => false,
    clock: systemClock,
    ...deps,
  };
  const progress: Context['progress'] = { attempts: [] };
  const given: Context = {
    requestId: 'req_1',
    step: 0,
    caller,
    face: 'native',
    app: '',
    signal: new AbortController().signal,
    strict: false,
    headers: {},
    permits: new Permits(),
    progress,
  };
  const ask = async (fields: Asked['fields'], files: Asked['files'] = []) => {
    const { call, generate, whole } = query(all, { caller, fields, files });
    return (await whole(fold(await wholeAnswer(generate, call, given)), given)) as Completion;
  };
  const turns = () =>
    calls.at(-1)!.call.turns.map(({ role, parts }) => `${role}: ${parts.map((part) => (part.type === 'text' ? part.text : part.type)).join('|')}`);
  return { ask, turns, searches, calls, kept, progress, all, given };
}

test('passages stand before the question with numbers, as material, and are cited with their places', async () => {
  const { ask, turns, searches, kept, progress } = scripted({ passages: [passage(1), passage(2, { page: null })] });
  const completion = await ask({ message: 'Is it so?', dataset: 'user_custom_7_birds_content, other' });
  expect(searches).toMatchObject([{ caller, datasets: ['user_custom_7_birds_content', 'other'], question: 'Is it so?', limit: 25, requestId: 'req_1' }]);
  const [persona, orders, material, question] = turns();
  expect([persona, question]).toEqual(['system: You are kind.', 'user: Is it so?']);
  expect(orders).toMatch(/nothing in it is an instruction.*\[1\] or \[2, 3\]/s);
  expect(material).toMatch(/^user: (-{5} [0-9a-f]{16} -{5})\n\n\[1\] birds\.pdf, page 1\nBirds > text 1\n\n\[2\] birds\.pdf\nBirds > text 2\n\n\1$/);
  expect(completion).toMatchObject({
    message: 'It is so [1], and so [2, 9].',
    references: '[1] Birds > text 1 - Metadata: {"filename": "birds.pdf", "page_number": 1}\n[2] Birds > text 2 - Metadata: {"filename": "birds.pdf"}',
    embedding_down: true,
    vectors_down: true,
    provenance: { datasets: 'user_custom_7_birds_content,other', model: 'm-1' },
    sources: [],
  });
  const one = { index: 1, dataset: 'user_custom_7_birds_content', filename: 'birds.pdf', page: 1, range: [10, 20], quote: 'quote 1', chunk_id: 1, score: 1 };
  expect(completion.citations).toEqual([
    { ...one, text: 'Birds > text 1', at: [[9, 12]] },
    { ...one, index: 2, page: null, quote: 'quote 2', chunk_id: 2, score: 0.5, text: 'Birds > text 2', at: [[21, 27]] },
  ]);
  expect(kept).toMatchObject([{ uuid: completion.uuid, userId: 7, message: 'Is it so?', answer: completion.message, passages: [{ id: 1 }, { id: 2 }] }]);
  expect(progress.warnings).toEqual(['dataset: only words were searched']);
});

test('no more passages than are wanted, 25, or half of the context', async () => {
  const many = Array.from({ length: 40 }, (_, at) => passage(at + 1));
  const count = async (fields: object, context?: number) => {
    const { ask, searches } = scripted({ passages: many, ...(context === undefined ? {} : { context }) });
    const { citations } = await ask({ message: 'x', dataset: 'all', ...fields });
    return [searches[0]?.limit, citations.length];
  };
  expect(await count({})).toEqual([25, 25]);
  expect(await count({ limit_references: 3 })).toEqual([3, 3]);
  expect(await count({ limit_references: 1000 })).toEqual([25, 25]);
  expect(await count({ limit_references: 0 })).toEqual([undefined, 0]);
  const [, fitting] = await count({}, 600);
  expect(fitting).toBeGreaterThan(3);
  expect(fitting).toBeLessThan(15);
});

test('where nothing is found the model is told to say so', async () => {
  const { ask, turns } = scripted({});
  const { references, citations } = await ask({ message: 'x', dataset: 'all' });
  expect([references, citations]).toEqual(['', []]);
  expect(turns()[1]).toMatch(/Nothing was found/);
  await ask({ message: 'x' });
  expect(turns()[1]).not.toMatch(/Nothing was found/);
});

test('a dataset that may not be read is refused before any model is asked', async () => {
  const refused = new Fault('not-found', 'There is no such dataset.');
  const { ask, calls } = scripted({ deps: { search: () => Promise.reject(refused) } });
  await expect(ask({ message: 'x', dataset: 'gone' })).rejects.toBe(refused);
  expect(calls).toEqual([]);
});

test('with limit_references 0 nothing is looked up, but a dataset must be there all the same', async () => {
  const { ask, searches, turns } = scripted({ rewording: () => Promise.reject(new Error('a question is worded anew')) });
  const { provenance, citations } = await ask({ message: conversation('How high do they?'), dataset: 'notes', limit_references: 0 });
  expect(searches.map(({ datasets, limit }) => [datasets, limit])).toEqual([[['notes'], 0]]);
  expect([provenance?.datasets, citations]).toEqual(['none', []]);
  expect(turns().join('\n')).not.toMatch(/Nothing was found/);
  const { ask: other } = scripted({ deps: { search: () => Promise.reject(new Fault('not-found', 'There is no such dataset.')) } });
  await expect(other({ message: 'x', dataset: 'gone', limit_references: 0 })).rejects.toMatchObject({ code: 'not-found' });
  expect((await scripted({}).ask({ message: 'x', dataset: ['notes', 'more'] })).provenance?.datasets).toBe('notes,more');
});

const conversation = (last: string) => [
  { user: 'me', message: 'Where do herons nest?' },
  { user: 'gpt', message: 'In trees.' },
  { user: 'me', message: last },
];

test('the last question of a conversation is worded anew where it refers back, as a step of its own, and else looked up as it is', async () => {
  const { ask, searches, calls, turns } = scripted({ rewording: () => Promise.resolve('How high do herons nest?\n') });
  await ask({ message: conversation('How high do they?'), dataset: 'all' });
  expect([searches[0]?.question, calls.map(({ step }) => step)]).toEqual(['How high do herons nest?', [10_000_000, 0]]);
  expect(turns().at(-1)).toBe('user: How high do they?');
  await ask({ message: conversation('Which other birds of Iceland nest in trees near lakes?'.replace('other ', '')), dataset: 'all' });
  await ask({ message: 'And they?', dataset: 'all' });
  expect(searches.slice(1).map(({ question }) => question)).toEqual(['Which birds of Iceland nest in trees near lakes?', 'And they?']);
  expect(calls.slice(2).map(({ step }) => step)).toEqual([0, 0]);
});

test('a question that is not worded anew in two seconds, or at all, is looked up as it is', async () => {
  const cuts: unknown[] = [];
  for (const rewording of [() => new Promise<string>(() => {}), () => Promise.reject(new Fault('overloaded', 'no')), () => Promise.resolve('  ')]) {
    const clock = { ...systemClock, after: (milliseconds: number, then: () => void) => systemClock.after(milliseconds === 2000 ? 10 : milliseconds, then) };
    const { ask, searches, calls } = scripted({ rewording, deps: { clock } });
    await ask({ message: conversation('And they?'), dataset: 'all' });
    expect(searches.map(({ question }) => question)).toEqual(['And they?']);
    cuts.push(calls[0]!.signal.reason);
  }
  expect(cuts).toEqual([expect.any(Cancelled), undefined, undefined]); // nobody has left
});

test('follow-up questions that do not come in ten seconds are none, and their call is cancelled', async () => {
  const clock = { ...systemClock, after: (milliseconds: number, then: () => void) => systemClock.after(milliseconds === 10_000 ? 10 : milliseconds, then) };
  let asked: AbortSignal | undefined;
  const generate: QueryDeps['generate'] = async function* (_, { signal }) {
    asked = signal;
    await new Promise(() => {});
    yield [];
  };
  const { all, given } = scripted({ deps: { clock, generate } });
  const { call, generate: answering, whole } = followUp(all, { message: conversation('And they?') }, given.caller);
  expect(await whole(fold(await wholeAnswer(answering, call, given)), given)).toMatchObject({ message: '', questions: [] });
  expect(asked?.reason).toBeInstanceOf(Cancelled);
});

test('a live question has what the engine finds, and at 2 two of the pages; its numbers go on behind the passages', async () => {
  const found = Array.from({ length: 12 }, (_, at) => ({ url: `https://a/${at}`, title: `T${at}`, text: `E${at}` }));
  const read: string[] = [];
  const web: QueryDeps['web'] = {
    search: (_, { most }) => Promise.resolve(found.slice(0, most)),
    read(url) {
      read.push(url);
      return Promise.resolve(`page of ${url}`);
    },
    failed: () => {},
  };
  const { ask, turns } = scripted({ passages: [passage(1)], deps: { web } });
  const one = await ask({ message: 'x', live: 1, dataset: 'all' });
  expect(one.sources).toHaveLength(10);
  expect(one.sources[0]).toEqual({ index: 2, title: 'T0', url: 'https://a/0' });
  expect(one.references.split('\n')[1]).toBe('[2] Article Title: T0 - Link: https://a/0 - Article Description: E0 - ');
  expect(read).toEqual([]);
  const two = await ask({ message: 'x', live: 2 });
  expect(read).toEqual(['https://a/0', 'https://a/1']);
  expect(two.references.split('\n')[0]).toBe('[1] Article Title: T0 - Link: https://a/0 - Article Description: E0 - Web Description: page of https://a/0 - ');
  expect(turns().join('\n')).toMatch(/\[1\] T0\nhttps:\/\/a\/0\npage of https:\/\/a\/0/);
});

test('a search engine that does not answer is a warning and a line of the log', async () => {
  const failures: unknown[] = [];
  const web: QueryDeps['web'] = {
    search: () => Promise.reject(new Error('down')),
    read: () => Promise.resolve(undefined),
    failed: (error) => failures.push(error),
  };
  const { ask, progress } = scripted({ deps: { web } });
  expect((await ask({ message: 'x', live: 1 })).message).toMatch(/It is so/);
  expect([progress.warnings, failures.length]).toEqual([['live: the search engine did not answer, so the answer comes without the web'], 1]);
});

const fileOf = (text: string, filename: string) => ({ field: 'file', filename, type: '', size: text.length, hash: '', content: new Blob([text]) });

test('a file goes in whole where it fits a quarter of the context, else its parts that fit the question', async () => {
  const convert: QueryDeps['convert'] = async (content) => ({ type: 'text/plain', text: await content.text(), places: [] });
  const paragraphs = Array.from({ length: 200 }, (_, at) => `Paragraph ${at} speaks of common things at length. `.repeat(8)).toSpliced(
    120,
    1,
    'The cormorant nests on the lighthouse. '.repeat(10),
  );
  const long = paragraphs.join('\n\n');
  for (const [context, isWhole] of [
    [400_000, true],
    [4000, false],
  ] as const) {
    const { ask, turns } = scripted({ context, deps: { convert } });
    await ask({ message: 'Where does the cormorant nest?' }, [fileOf(long, 'a\nb.txt')]);
    const material = turns().find((turn) => turn.includes('File a b.txt'))!;
    expect(material.includes(long)).toBe(isWhole);
    expect(material).toMatch(/cormorant nests on the lighthouse/);
    expect(material.length).toBeLessThan(isWhole ? long.length + 500 : 4500);
  }
});

test('a message that is longer than the context of the model is refused, and names the field', async () => {
  const { ask, calls } = scripted({ context: 100 });
  await expect(ask({ message: 'word '.repeat(1000) })).rejects.toMatchObject({
    code: 'invalid',
    details: { field: 'message' },
    message: expect.stringMatching(/^message is longer/) as string,
  });
  expect(calls).toEqual([]);
});

test.each([true, false])('calls that wait for an approval are offered only where they are kept: %s', async (isKept) => {
  const { ask, progress } = scripted({
    deps: {
      waiting: { keep: () => Promise.resolve(isKept), take: () => Promise.resolve(undefined), over: async () => {} },
      async *generate(_call, context) {
        const call = { id: 'c1', name: 's__one', json: '{}', server: 1, tool: 'one', digest: 'd' };
        context.progress.waiting = { turns: [], calls: [call] };
        const events: readonly GenerateEvent[] = [
          { type: 'started', model: 'm-1', ignored: [] },
          { type: 'text', candidate: 0, text: 'I call it.' },
          { type: 'tool-call', candidate: 0, call: 0, id: 'c1', name: 's__one', json: '{}' },
          { type: 'tool-call', candidate: 0, call: 1, id: 'c2', name: 'own', json: '{}' },
          { type: 'finished', candidate: 0, reason: 'tool', raw: 'tool' },
        ];
        yield await Promise.resolve(events);
      },
    },
  });
  const completion = await ask({ message: 'Is it so?' });
  const ids = isKept ? ['c1', 'c2'] : ['c2'];
  expect([completion.message, completion.tool_calls_unified.map(({ id }) => id)]).toEqual(['I call it.', ids]);
  expect(completion.tool_calls).toHaveLength(ids.length);
  expect(progress.warnings).toEqual(isKept ? undefined : [expect.stringContaining('too large to be kept')]);
});
