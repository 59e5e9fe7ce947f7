import type { Turn } from '#core/conversation';
import type { Context } from '#core/context';
import type { CountTokens } from '#core/measure';
import type { Passage } from '#core/passages';
import { datasetNamesIn, namesAll, namesNothing } from '../dataset-names.ts';
import type { QueryDeps } from './deps.ts';
import { questionFor } from './question.ts';
import { foundOnWeb, type Live } from './web.ts';
import type { Material } from './material.ts';
import { invalid } from '#core/fault';

export interface LookedUp {
  readonly datasets: 'all' | readonly string[];
  /** Most passages; 0: nothing is looked up. */
  readonly limit: number;
  readonly live: Live;
}

/** What the provenance of an answer says of the datasets: those that were looked up. */
export const datasetsSaid = ({ datasets, limit }: Pick<LookedUp, 'datasets' | 'limit'>): string =>
  limit === 0 ? 'none' : datasets === 'all' ? 'all' : datasets.join(',') || 'none';

/** Most passages of an answer, however many a client wants. */
export const mostPassages = 25;
const mostDatasets = 100;

/** The datasets of a request: names as a list, or in one text with commas between them. @throws Fault `invalid` */
export function datasetsOf(given: string | readonly string[] | null | undefined): LookedUp['datasets'] {
  const names = (typeof given === 'string' ? datasetNamesIn(given) : (given ?? [])).map((name) => name.trim());
  if (names.some(namesAll)) return 'all';
  const chosen = [...new Set(names)].filter((name) => !namesNothing(name));
  if (chosen.length > mostDatasets) throw invalid('dataset', `must have at most ${mostDatasets} names; "all" means all that you may read`);
  return chosen;
}

const isAskedOfDatasets = ({ datasets, limit }: Pick<LookedUp, 'datasets' | 'limit'>): boolean => (datasets === 'all' ? limit > 0 : datasets.length > 0);

export const isLookedUp = (where: LookedUp): boolean => isAskedOfDatasets(where) || (where.limit > 0 && where.live > 0);

/** What datasets and the web have on the last question. @throws Fault `not-found` for a dataset that the caller may not read */
export async function lookedUp(
  turns: readonly Turn[],
  { datasets, limit, live }: LookedUp,
  room: number,
  deps: QueryDeps,
  context: Context,
): Promise<Pick<Material, 'passages' | 'web' | 'isEmptyHanded' | 'vectorsDown'>> {
  const asksDatasets = isAskedOfDatasets({ datasets, limit });
  const asksWeb = limit > 0 && live > 0;
  if (!asksDatasets && !asksWeb) return { passages: [], web: [], isEmptyHanded: false, vectorsDown: false };
  const { generate, clock, defaults } = deps;
  const { caller, requestId, progress, permits, app, tags, signal } = context;
  const question = limit > 0 ? await questionFor(turns, { generate, clock, model: defaults().rewording }, context) : '';
  const [found, web] = await Promise.all([
    asksDatasets
      ? deps.search({ caller, datasets, question, limit, requestId, progress, permits, app, tags, signal })
      : { passages: [], vectorsDown: false, warnings: [] },
    foundOnWeb(deps.web, asksWeb ? live : 0, question, context),
  ]);
  if (found.warnings.length > 0) (context.progress.warnings ??= []).push(...found.warnings);
  const passages = await fitting(found.passages.filter(({ cut }) => cut === undefined).slice(0, limit), room, deps.countTokens, context);
  return { passages, web, isEmptyHanded: limit > 0 && passages.length === 0 && web.length === 0, vectorsDown: found.vectorsDown };
}

/** Tokens of the title of a passage and what stands around it. */
const aroundPassage = 16;

/** The best passages, as many as there is room for. */
async function fitting(passages: readonly Passage[], room: number, countTokens: CountTokens, { caller, signal }: Context): Promise<readonly Passage[]> {
  const asking = { owner: String(caller.userId), signal };
  let left = room;
  for (const [at, { text, filename }] of passages.entries()) {
    left -= (await countTokens([text, filename], asking)) + aroundPassage;
    if (left < 0) return passages.slice(0, at);
  }
  return passages;
}
