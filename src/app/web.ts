import { pageText } from '#gateway/searching/pages';
import type { Web } from '#resources/query/web';
import type { Calls } from './calls.ts';

/** The web as the settings open it at the moment, for what is looked up beside calls of models. */
export function webOf({ runtime, web: { fetcher, failed } }: Pick<Calls, 'runtime' | 'web'>): Web {
  return {
    get search(): Web['search'] {
      const { engine } = runtime();
      return engine && ((question, asking) => engine.search(question, {}, asking));
    },
    read: (url, asking) => pageText(fetcher, url, asking),
    failed,
  };
}
