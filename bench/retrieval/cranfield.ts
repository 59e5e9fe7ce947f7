/** Cranfield: 1,400 abstracts of papers and 225 questions with judgements, in `bench/data`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '#kit/async/clock';
import type { Passage } from '#core/passages';
import { openStore } from '#store/open';
import { chunked, openPassageIndex } from '#resources/datasets/search/index';
import { callerOf, document, migrations, newDataset, newFile, newUser } from '../../test/support/datasets.ts';
import { add, builtInVectors, dimensions, model, printChannels, searchIn, vectorsOf } from './asking.ts';

const read = (name: string) => gunzipSync(readFileSync(new URL(`../data/${name}.gz`, import.meta.url))).toString();
const spaced = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
const entriesOf = (name: string) => read(name).split(/^\.I \d+\r?\n/m).slice(1); // prettier-ignore

export async function cranfield(folder: string, { lexical }: { readonly lexical: boolean }): Promise<void> {
  const questions = entriesOf('cran.qry').map((text) => spaced(text.replace(/^\.W/m, '')));
  const relevant = questions.map(() => new Set<string>());
  for (const line of read('cranqrel').trim().split('\n')) {
    const [question, id] = line.trim().split(/\s+/); // whatever the grade: -1 is the paper that the question was made from
    relevant[Number(question) - 1]!.add(id!);
  }
  const store = await openStore({ folder: join(folder, 'cranfield'), migrations, clock: systemClock });
  const user = await newUser(store);
  const dataset = await newDataset(store, user, lexical ? undefined : { model, dimensions });
  await openPassageIndex(store).prepare({ model, dimensions });
  const embed = await builtInVectors();
  for (const [at, one] of entriesOf('cran.all.1400').entries()) {
    const [, title = '', text = ''] = /\.T\r?\n([\s\S]*?)\.A\r?\n[\s\S]*?\.W\r?\n([\s\S]*)/.exec(one) ?? [];
    const { chunks } = await chunked(document(spaced(text) || spaced(title)), { title: spaced(title) });
    const of = lexical ? undefined : await vectorsOf(embed, chunks);
    await add(store, { datasetId: dataset.id, fileId: await newFile(store, dataset.id, String(at + 1)), chunks, of });
    if (at % 200 === 199) console.error(`${at + 1} abstracts`);
  }
  const ask = searchIn(store, embed);
  const found: (readonly Passage[])[] = [];
  for (const question of questions) found.push((await ask(callerOf(user), question, { limit: 100, explain: true })).passages);
  printChannels('Cranfield', found, relevant, ({ filename }) => [filename]);
  await store.close();
}
