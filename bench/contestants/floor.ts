/** The floor (`../floor/server.ts`): the least that a gateway on the same Node costs. */
import { join } from 'node:path';
import { key, openNode, type Entrant } from './contestant.ts';

const file = join(import.meta.dirname, '../floor/server.ts');

export const floor: Entrant = {
  missing: () => undefined,
  open: (place) => openNode('floor', { file, words: () => [], headers: [`Authorization: Bearer ${key}`] }, place),
};
