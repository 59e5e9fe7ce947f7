import type { Asked, Route } from '#http/route';
import type { Caller } from '#core/context';
import type { KnownModels } from '#core/known-models';

export type ModelsOf = (caller: Caller) => KnownModels;

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
