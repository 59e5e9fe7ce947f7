import type { Asked, Route } from '#http/route';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Model } from '#core/target';

/** The models that are shown, and any that can be asked for by name. */
export interface ModelList {
  find(name: string): Model | undefined;
  list(): readonly Model[];
}

/** What a caller may ask. */
export type ModelsOf = (caller: Caller) => ModelList;

export const noModel = (): Fault => new Fault('not-found', 'The model does not exist or you do not have access to it.', { field: 'model', reason: 'model' });

type Words = Pick<Route, 'summary' | 'output' | 'answer'>;

/** `GET /models` and `GET /models/{id}`, in the words of a face. An id may have slashes in it. */
export function modelRoutes(
  root: string,
  list: Words,
  one: Omit<Words, 'answer'> & { readonly answer: (name: string, asked: Asked) => unknown },
): readonly Route[] {
  const shared = { method: 'GET', scope: 'passthrough', owner: 'nobody' } as const;
  return [
    { ...shared, path: `${root}/models`, ...list },
    { ...shared, path: `${root}/models/*`, ...one, answer: (asked) => one.answer(asked.exchange.params['*'] ?? '', asked) },
  ];
}
