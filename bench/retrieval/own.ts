/**
 * Documents and questions of our own, in `bench/data/own`: each question has a file and quotations from it, one for each passage that answers it, or neither where
 * nothing does. A quotation is found by its words, so that converters and chunker may change.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '#kit/async/clock';
import { openDocuments } from '#kit/documents/index';
import type { Passage } from '#core/passages';
import { openStore } from '#store/open';
import { chunked, openPassageIndex } from '#resources/datasets/search/index';
import { callerOf, migrations, newDataset, newFile, newUser } from '../../test/support/datasets.ts';
import { add, builtInVectors, dimensions, model, printChannels, searchIn, vectorsOf } from './asking.ts';

interface Question {
  readonly question: string;
  /** The question before it, to which it refers. */
  readonly after?: string;
  readonly file?: string;
  readonly quotes?: readonly string[];
}

/** From, to before; in code points. */
type Span = readonly [number, number];

const place = new URL('../data/own/', import.meta.url);
const questions = JSON.parse(readFileSync(new URL('questions.json', place), 'utf8')) as readonly Question[];

export async function own(folder: string): Promise<void> {
  const store = await openStore({ folder: join(folder, 'own'), migrations, clock: systemClock });
  const user = await newUser(store);
  const dataset = await newDataset(store, user, { model, dimensions });
  await openPassageIndex(store).prepare({ model, dimensions });
  const embed = await builtInVectors();
  const documents = openDocuments({ size: 1 });
  const texts = new Map<string, string>();
  let count = 0;
  for (const name of readdirSync(place).filter((file) => file !== 'questions.json')) {
    const document = await documents.convert(new Blob([readFileSync(new URL(encodeURIComponent(name), place))]), { filename: name });
    const { chunks, language } = await chunked(document, { title: name.replace(/\.\w+$/, '') });
    const of = language === 'en' ? await vectorsOf(embed, chunks) : undefined; // as the built-in model is used
    await add(store, { datasetId: dataset.id, fileId: await newFile(store, dataset.id, name), language, chunks, of });
    texts.set(name, document.text);
    count += chunks.length;
  }
  documents.close();
  console.log(`${texts.size} documents of our own, ${count} passages`);

  const ask = searchIn(store, embed, true);
  const found: (readonly Passage[])[] = [];
  for (const { after, question } of questions)
    found.push((await ask(callerOf(user), after === undefined ? question : `${after} ${question}`, { limit: 100, explain: true })).passages);
  const answered = questions.flatMap(({ file, quotes }, at) =>
    file && quotes ? [{ at, file, spans: quotes.map((quote) => spanOf(texts.get(file)!, quote)) }] : [],
  );
  printChannels(
    `${answered.length} questions`,
    answered.map(({ at }) => found[at]!),
    answered.map(({ spans }) => new Set(spans.map((_, index) => `answer ${index}`))),
    ({ id, filename, range }, at) => {
      const { file, spans } = answered[at]!;
      const held = spans.flatMap((span, index) => (file === filename && holds(range, span) ? [`answer ${index}`] : []));
      return held.length > 0 ? held : [`passage ${id}`];
    },
  );
  const open = questions.flatMap(({ file }, at) => (file === undefined ? [found[at]!] : []));
  const nothing = (of: (passage: Passage) => boolean) => open.filter((passages) => !passages.some(of)).length;
  console.log(
    `${open.length} questions without an answer: nothing found for ${nothing(() => true)}, and no words of it for ${nothing(({ ranks }) => ranks.lexical !== null)}`,
  );
  await store.close();
}

/** At least half of the answer. */
const holds = ([from, to]: Span, [start, end]: Span) => 2 * (Math.min(to, end) - Math.max(from, start)) >= end - start;

function spanOf(text: string, quote: string): Span {
  const words = quote.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
  const match = new RegExp(words.join('[^\\p{L}\\p{N}\\p{M}]+'), 'u').exec(text);
  if (!match) throw new Error(`No document has “${quote}”.`);
  const points = (units: number) => Array.from(text.slice(0, units)).length;
  return [points(match.index), points(match.index + match[0].length)];
}
