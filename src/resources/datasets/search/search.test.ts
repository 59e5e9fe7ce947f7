import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { forgetGrants, grantTo, setGrants } from '#store/grants';
import type { Store } from '#store/open';
import { onBothDatabases } from '../../../../test/support/databases.ts';
import { lexicalRanks, usualLimits } from './lexical.ts';
import { openPassageIndex } from './passage-index.ts';
import { keyOf } from './postings.ts';
import { scopeOf } from './scope.ts';
import { openSearch, type SearchDeps } from './search.ts';
import { asking, callerOf, embedBy, filed, migrations, newDataset, newFile, newUser, vectorOf } from '../../../../test/support/datasets.ts';
import type { PassageIndex } from './types.ts';
import { openVectorRanker } from './vector-ranker.ts';

const words = ['holiday', 'salary', 'server', 'garden'];
const byWords = (text: string) => vectorOf(text, words);

/** A search whose models are scripted. */
function searchOf(store: Store, more: Partial<SearchDeps> = {}) {
  const failures: unknown[] = [];
  const search = openSearch({
    store,
    ranker: openVectorRanker({ store, cacheBytes: () => 1_000_000 }),
    rerank: async () => undefined,
    embed: embedBy({ words: byWords }),
    isEnglishOnly: () => false,
    failed: (error) => failures.push(error),
    ...more,
  });
  return { ask: asking(search), failures };
}

onBothDatabases('a search', ({ shared }) => {
  const store = shared({ migrations });
  let index: PassageIndex;
  beforeAll(() => {
    index = openPassageIndex(store());
  });

  test('finds passages by words and by vectors, with the rank of each, and fuses the ranks', async () => {
    const user = await newUser(store());
    const { id, name } = await newDataset(store(), user, { model: 'words', dimensions: 4 });
    const texts = ['The holiday allowance is thirty days.', 'Salaries are paid on the last day. The salary is monthly.', 'The server room is cold.'];
    for (const text of texts) await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text, model: 'words', embed: byWords });
    const { ask } = searchOf(store());
    const found = await ask(callerOf(user), 'How long is the holiday allowance?', { datasets: [name] });
    expect(found).toMatchObject({ vectorsDown: false, warnings: [] });
    expect(found.passages[0]).toMatchObject({
      dataset: name,
      quote: texts[0],
      page: null,
      range: [0, texts[0]!.length],
      ranks: { lexical: 1, vector: 1, fused: 1, rerank: null },
    });
    expect(found.passages[0]!.score).toBeCloseTo(2 / 61, 10);
    // the others by vectors alone
    expect(found.passages.slice(1).map(({ ranks }) => ranks.lexical)).toEqual([null, null]);
    expect(found.passages.map(({ ranks }) => ranks.fused)).toEqual([1, 2, 3]);
    const limited = await ask(callerOf(user), 'holiday salary', { limit: 1, explain: true });
    expect(limited.passages.map(({ cut }) => cut)).toEqual([undefined, 'limit', 'limit']);
    expect(await ask(callerOf(user), 'holiday', { limit: 1 })).toMatchObject({ passages: [{}] });
  });

  test('finds what a word is in another form of, in the language of the file', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user);
    const german = 'Die Kündigungsfristen betragen für alle Verträge drei Monate. Die Häuser werden danach übergeben.';
    const japanese = '東京の会議室は三階にあります。予約は総務部に連絡してください。';
    const korean = '서울 본사의 회의실은 삼층에 있습니다.';
    const english = 'Contracts are terminated by written notices of the parties who signed what they wanted.';
    for (const text of [german, japanese, korean, english]) await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text });
    const { ask } = searchOf(store());
    const first = async (question: string) => (await ask(callerOf(user), question)).passages.map(({ quote }) => quote)[0];
    expect(await first('Kündigungsfrist Vertrag')).toBe(german);
    expect(await first('Haus')).toBe(german);
    expect(await first('会議室の予約')).toBe(japanese);
    expect(await first('회의실')).toBe(korean);
    expect(await first('notice of a party')).toBe(english);
    expect((await ask(callerOf(user), 'the of and')).passages).toEqual([]);
    expect((await ask(callerOf(user), '?! \0 ""')).passages).toEqual([]);
  });

  test('finds Korean words whole in what an earlier release indexed', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user);
    await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text: '회의실은' });
    await sql`delete from postings where dataset_id = ${id} and term <> '회의'`.execute(store().db);
    await sql`update postings set term = '회의실은' where dataset_id = ${id}`.execute(store().db);
    const { ask } = searchOf(store());
    expect((await ask(callerOf(user), '회의실은 어디에 있습니까?')).passages).toMatchObject([{ quote: '회의실은' }]);
    expect((await ask(callerOf(user), '사무실은 어디에 있습니까?')).passages).toEqual([]);
  });

  test('ranks a large scope, where common words choose no passages, as a small one, of which all is read', async () => {
    const [owner, reader] = [await newUser(store()), await newUser(store())];
    const { id, name } = await newDataset(store(), owner);
    // every passage has `river`, each third `bridge`, and few a word of their own
    for (let at = 0; at < 40; at++) {
      const fileId = await newFile(store(), id);
      const text = `The river ${'flows and '.repeat(at % 7)} ${at % 3 === 0 ? 'under a bridge' : 'to the sea'} ${at % 9 === 0 ? 'of granite' : ''} ${'river '.repeat(at % 4)}`;
      await filed(store(), index, { datasetId: id, fileId, text });
      if (at % 5 === 0) await sql`update dataset_files set narrowed = true where id = ${fileId}`.execute(store().db);
    }
    await grantTo(store(), 'dataset', id, reader, 'read');
    const ranks = async (user: number, question: string, rows: number) => {
      const scope = await scopeOf(store().db, { caller: callerOf(user), datasets: [name] });
      return (await lexicalRanks(store().db, scope, question, 10, { ...usualLimits, rows, sampled: 40, candidates: 40, feedback: 0 })).map(keyOf);
    };
    for (const user of [owner, reader])
      for (const question of ['the granite bridge over the river', 'river bridge', 'a river', 'granite', 'quartz']) {
        const [whole, large] = [await ranks(user, question, 1000), await ranks(user, question, 0)];
        expect([question, large]).toEqual([question, whole]);
        expect(whole).toHaveLength(question === 'quartz' ? 0 : question === 'granite' ? (user === owner ? 5 : 4) : 10);
      }
    expect(await ranks(reader, 'river', 1000)).not.toEqual(await ranks(owner, 'river', 1000));
  });

  test('puts what resembles the best passages before what has the word alone', async () => {
    const user = await newUser(store());
    const { id, name } = await newDataset(store(), user);
    for (const text of [
      'A heron is a machine with an engine.',
      'A heron is a bird with a nest in the marsh.',
      'Herons nest in the reeds of a marsh, where the nest is dry.',
    ])
      await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text });
    const scope = await scopeOf(store().db, { caller: callerOf(user), datasets: [name] });
    const first = async (feedback: number) =>
      (await lexicalRanks(store().db, scope, 'heron dry', 10, { ...usualLimits, feedback })).map(({ edition }) => edition);
    const [marsh, machine, bird] = await first(0);
    expect(machine).toBeLessThan(bird!); // both have the one word, and the older comes first
    expect(await first(1)).toEqual([marsh, bird, machine]);
  });

  test('ranks what a caller may read by nothing that they may not read', async () => {
    const [owner, reader] = [await newUser(store()), await newUser(store())];
    const { id } = await newDataset(store(), owner);
    await grantTo(store(), 'dataset', id, reader, 'read');
    const add = async (text: string) => {
      const fileId = await newFile(store(), id);
      await filed(store(), index, { datasetId: id, fileId, text });
      return fileId;
    };
    for (let at = 0; at < 12; at++)
      await add(`A heron ${at % 2 ? 'nests in the marsh' : 'is a machine'} ${at % 3 ? 'by the quay' : 'with an engine'} ${'of reeds '.repeat(at % 5)}`);
    const ranks = async (user: number, rows: number) => {
      const scope = await scopeOf(store().db, { caller: callerOf(user), datasets: 'all' });
      return (await lexicalRanks(store().db, scope, 'heron marsh quay', 10, { ...usualLimits, rows })).map(keyOf);
    };
    const [whole, large, owners] = [await ranks(reader, 1000), await ranks(reader, 0), await ranks(owner, 1000)];
    for (let at = 0; at < 12; at++) {
      const fileId = await add(`The heron heron in the marsh has an engine by the quay. ${'An engine of a machine. '.repeat(at)}`);
      await sql`update dataset_files set narrowed = true where id = ${fileId}`.execute(store().db);
    }
    expect([await ranks(reader, 1000), await ranks(reader, 0)]).toEqual([whole, large]);
    expect(await ranks(owner, 1000)).not.toEqual(owners);
  });

  test('is refused for a dataset that the caller may not read as for one that does not exist', async () => {
    const [owner, other] = [await newUser(store()), await newUser(store())];
    const { id, name } = await newDataset(store(), owner);
    await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text: 'The vault has the number 4711.' });
    const { ask } = searchOf(store());
    const refused = (datasets: readonly string[]) => ask(callerOf(other), 'vault', { datasets }).catch((error: unknown) => error as Fault);
    expect(await refused([name])).toMatchObject({ code: 'not-found', message: `There is no dataset ${name}.` });
    expect(await refused(['unknown'])).toMatchObject({ code: 'not-found', message: 'There is no dataset unknown.' });
    expect((await ask(callerOf(other), 'vault')).passages).toEqual([]);
    await grantTo(store(), 'dataset', id, other, 'read');
    expect((await ask(callerOf(other), 'vault', { datasets: [name] })).passages).toHaveLength(1);
    await sql`delete from grants where kind = 'dataset' and thing_id = ${id}`.execute(store().db);
    expect(await refused([name])).toMatchObject({ code: 'not-found' });
    await sql`update datasets set deleted_at = now() where id = ${id}`.execute(store().db);
    expect((await ask(callerOf(owner), 'vault')).passages).toEqual([]);
  });

  test('gives to each of 40 random callers exactly the files that an oracle lets them read, by words and by vectors', async () => {
    let seed = 7;
    const random = (most: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % most;
    const users = await Promise.all(Array.from({ length: 8 }, () => newUser(store())));
    const files: { readonly name: string; readonly readers: ReadonlySet<number> }[] = [];
    for (let at = 0; at < 12; at++) {
      const owner = users[random(8)]!;
      const { id } = await newDataset(store(), owner, { model: 'words', dimensions: 4 });
      const readers = users.filter(() => random(3) === 0);
      await store().transaction((inside) =>
        setGrants(
          inside,
          'dataset',
          id,
          readers.map((user) => ({ user, right: 'read' })),
        ),
      );
      for (let file = 0; file < 3; file++) {
        const fileId = await newFile(store(), id, `oracle-${at}-${file}.md`);
        await filed(store(), index, { datasetId: id, fileId, text: `The garden of oracle number ${at} has ${file} trees.`, model: 'words', embed: byWords });
        const isNarrowed = random(3) === 0;
        const narrowed = isNarrowed ? readers.filter(() => random(2) === 0) : readers;
        if (isNarrowed) {
          await sql`update dataset_files set narrowed = true where id = ${fileId}`.execute(store().db);
          await store().transaction((inside) =>
            setGrants(
              inside,
              'file',
              fileId,
              narrowed.map((user) => ({ user, right: 'read' })),
            ),
          );
        }
        files.push({ name: `oracle-${at}-${file}.md`, readers: new Set([owner, ...narrowed]) });
      }
    }
    const { ask } = searchOf(store());
    for (let at = 0; at < 40; at++) {
      const user = users[random(8)]!;
      const { passages } = await ask(callerOf(user), at % 2 === 0 ? 'the oracle' : 'garden', { limit: 100, explain: true });
      const found = passages.map(({ filename }) => filename).filter((name) => name.startsWith('oracle-'));
      expect(found.toSorted()).toEqual(
        files
          .filter(({ readers }) => readers.has(user))
          .map(({ name }) => name)
          .toSorted(),
      );
    }
    await store().transaction((inside) => forgetGrants(inside, 'dataset', []));
  });

  test('finds the generation that counts, and no other, before and after the flip', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user, { model: 'words', dimensions: 4 });
    const fileId = await newFile(store(), id);
    const { ask } = searchOf(store());
    const found = async () => (await ask(callerOf(user), 'salary holiday', { explain: true })).passages.map(({ quote }) => quote);
    await filed(store(), index, { datasetId: id, fileId, text: 'An old salary.', model: 'words', embed: byWords });
    expect(await found()).toEqual(['An old salary.']);
    const chunk = { ordinal: 0, start: 0, end: 13, page: 2, context: '', quote: 'A new salary.', text: 'A new salary.', tokens: 4 };
    const passages = {
      datasetId: id,
      fileId,
      generation: 2,
      language: 'en',
      chunks: [chunk],
      vectors: { model: 'words', dimensions: 4, of: [byWords(chunk.text)] },
    };
    await store().transaction((inside) => index.add(inside, passages));
    const restarted = openPassageIndex(store());
    await store().transaction((inside) => restarted.add(inside, passages)); // again, as after a kill
    expect(await found()).toEqual(['An old salary.']);
    expect(await store().transaction((inside) => index.flip(inside, { fileId, generation: 2 }))).toEqual({ passages: 1, tokens: 4 });
    expect(await found()).toEqual(['A new salary.']);
    await index.remove({ fileId, exceptGeneration: 2 });
    expect(await found()).toEqual(['A new salary.']);
    await index.remove({ fileId });
    expect(await found()).toEqual([]);
    for (const table of ['postings', 'passages', 'editions'])
      expect(
        (
          await sql`select 1 from ${sql.table(table)} where ${sql.ref(table === 'editions' ? 'id' : 'edition_id')} not in (select id from editions)`.execute(
            store().db,
          )
        ).rows,
      ).toEqual([]);
  });

  test('finds a copy in the other dataset alone once the original is gone', async () => {
    const user = await newUser(store());
    const [from, to] = [await newDataset(store(), user, { model: 'words', dimensions: 4 }), await newDataset(store(), user, { model: 'words', dimensions: 4 })];
    const [fileId, copyId] = [await newFile(store(), from.id), await newFile(store(), to.id)];
    await filed(store(), index, { datasetId: from.id, fileId, text: 'A salary for the gardener in the garden.', model: 'words', embed: byWords });
    const counts = await index.copy({ fileId }, { datasetId: to.id, fileId: copyId, generation: 1 });
    expect(counts).toEqual(await index.counts(store(), { fileId, generation: 1 }));
    await index.copy({ fileId }, { datasetId: to.id, fileId: copyId, generation: 1 });
    const { ask } = searchOf(store());
    expect((await ask(callerOf(user), 'gardener', { datasets: [to.name] })).passages).toEqual([]);
    await store().transaction((inside) => index.flip(inside, { fileId: copyId, generation: 1 }));
    await index.remove({ fileId });
    const { passages } = await ask(callerOf(user), 'gardener garden');
    expect(passages).toMatchObject([{ dataset: to.name, ranks: { lexical: 1, vector: 1 } }]);
    await sql`delete from dataset_files where id = ${copyId}`.execute(store().db);
    expect(await index.reconcile()).toBeGreaterThan(0);
    expect(await index.reconcile()).toBe(0);
  });

  test('asks each index with a vector of its own model, and goes on with words where a model is gone', async () => {
    const user = await newUser(store());
    const other = (text: string) => vectorOf(text, ['garden', 'server', 'salary']);
    const first = await newDataset(store(), user, { model: 'words', dimensions: 4 });
    const second = await newDataset(store(), user, { model: 'other', dimensions: 3 });
    await filed(store(), index, { datasetId: first.id, fileId: await newFile(store(), first.id), text: 'A server hums.', model: 'words', embed: byWords });
    await filed(store(), index, {
      datasetId: second.id,
      fileId: await newFile(store(), second.id),
      text: 'Another server hums.',
      model: 'other',
      embed: other,
    });
    const both = await searchOf(store(), { embed: embedBy({ words: byWords, other }) }).ask(callerOf(user), 'server');
    expect(both.passages.map(({ ranks }) => ranks.vector)).toEqual([1, 1]);
    const { ask, failures } = searchOf(store());
    const one = await ask(callerOf(user), 'server');
    expect(one).toMatchObject({ vectorsDown: true, warnings: ['other makes no vectors at the moment: the question was searched by its words alone.'] });
    expect(one.passages.map(({ dataset, ranks }) => [dataset, ranks.vector])).toEqual(
      expect.arrayContaining([
        [first.name, 1],
        [second.name, null],
      ]),
    );
    expect(failures).toHaveLength(1);
    const spent = searchOf(store(), { embed: () => Promise.reject(new Fault('quota-spent', 'Your quota is spent.')) });
    await expect(spent.ask(callerOf(user), 'server')).rejects.toMatchObject({ code: 'quota-spent' });
  });

  test('ranks what words find before what the vectors of a weak model find, and leaves out neither', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user, { model: 'words', dimensions: 4 });
    // the vectors have the second text first, the words find the first alone
    for (const text of ['A lawn is cut in May.', 'The garden is closed.'])
      await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text, model: 'words', embed: byWords });
    const embed = embedBy({ words: () => byWords('garden') });
    const quotes = async (weight: number) =>
      (await searchOf(store(), { embed, weightOf: () => weight }).ask(callerOf(user), 'lawn')).passages.map(({ quote, ranks }) => [
        quote,
        ranks.lexical,
        ranks.vector,
      ]);
    const [lawn, garden] = [
      ['A lawn is cut in May.', 1, 2],
      ['The garden is closed.', null, 1],
    ];
    expect(await quotes(0.05)).toEqual([lawn, garden]);
    expect(await quotes(100)).toEqual([garden, lawn]);
  });

  test('asks for a model’s vectors of the length that the index has', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user, { model: 'long', dimensions: 2 });
    const short = (text: string) => byWords(text).slice(0, 2);
    await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text: 'A holiday.', model: 'long', embed: short });
    const asked: (number | undefined)[] = [];
    const { ask } = searchOf(store(), {
      embed: async ({ texts, dimensions }) => {
        asked.push(dimensions);
        return texts.map(dimensions === 2 ? short : byWords);
      },
    });
    expect((await ask(callerOf(user), 'holiday')).passages).toMatchObject([{ ranks: { vector: 1 } }]);
    expect(asked).toEqual([undefined, 2]);
    const wrong = await searchOf(store(), { embed: async ({ texts }) => texts.map(byWords) }).ask(callerOf(user), 'holiday');
    expect(wrong).toMatchObject({ vectorsDown: true, passages: [{ ranks: { lexical: 1, vector: null } }] });
  });

  test('leaves the vectors of an English model out for other languages, and says so', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user, { model: 'words', dimensions: 4 });
    const german = 'Der Urlaub beträgt dreißig Tage. Die Gehälter werden am Ende des Monats gezahlt, und der Server steht im Keller.';
    await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text: german, model: 'words', embed: byWords });
    await filed(store(), index, {
      datasetId: id,
      fileId: await newFile(store(), id),
      text: 'The holiday of the team is long.',
      model: 'words',
      embed: byWords,
    });
    const { ask } = searchOf(store(), { isEnglishOnly: () => true });
    const english = await ask(callerOf(user), 'What is the holiday, and the server?');
    expect(english.vectorsDown).toBe(false);
    expect(english.warnings).toEqual(['Texts that are not English were searched by their words alone: the model of their vectors reads English only.']);
    expect(english.passages.map(({ quote, ranks }) => [quote.slice(0, 10), ranks.vector])).toEqual([
      ['The holida', 1],
      ['Der Urlaub', null],
    ]);
    const { warnings, passages } = await ask(callerOf(user), 'Wie viele Tage beträgt der Urlaub für alle Mitarbeiter?');
    expect(warnings).toContain('words reads English only: the question was searched by its words alone.');
    expect(passages[0]).toMatchObject({ quote: german, ranks: { lexical: 1, vector: null } });
  });

  test('takes the order of the reranker, and its own where the reranker fails', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user);
    for (const text of ['Server one.', 'Server two server.', 'Server three.'])
      await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text });
    const { ask } = searchOf(store(), {
      rerank: async (_, texts) => [
        { index: texts.indexOf('Server three.'), score: 0.9 },
        { index: texts.indexOf('Server one.'), score: 0.2 },
      ],
    });
    const { passages } = await ask(callerOf(user), 'server', { explain: true });
    expect(passages.map(({ quote, score, ranks, cut }) => [quote, ranks.rerank === null ? null : score, ranks.rerank, cut])).toEqual([
      ['Server three.', 0.9, 1, undefined],
      ['Server one.', 0.2, 2, undefined],
      ['Server two server.', null, null, 'rerank'],
    ]);
    const broken = searchOf(store(), { rerank: () => Promise.reject(new Error('slow')) });
    const found = await broken.ask(callerOf(user), 'server');
    expect(found.warnings).toEqual(['The reranking service did not answer: the passages stand in the order of the search.']);
    expect(found.passages.map(({ ranks }) => [ranks.fused, ranks.rerank])).toEqual([
      [1, null],
      [2, null],
      [3, null],
    ]);
  });

  test('merges passages that follow each other, to the very characters of the file', async () => {
    const user = await newUser(store());
    const { id } = await newDataset(store(), user);
    const paragraphs = Array.from({ length: 12 }, (_, at) =>
      `Paragraph ${at} 🌳 of the garden. ${'It has many words about trees and their leaves. '.repeat(18)}`.trim(),
    );
    const text = paragraphs.join('\n\n');
    expect(await filed(store(), index, { datasetId: id, fileId: await newFile(store(), id), text })).toBeGreaterThan(3);
    const { ask } = searchOf(store());
    const { passages } = await ask(callerOf(user), 'garden', { explain: true });
    const kept = passages.filter(({ cut }) => cut === undefined);
    expect(passages.some(({ cut }) => cut === 'merged')).toBe(true);
    expect(kept.length).toBeLessThan(passages.length);
    const points = Array.from(text);
    for (const { range, quote } of kept) expect(points.slice(...range).join('')).toBe(quote);
  });
});
