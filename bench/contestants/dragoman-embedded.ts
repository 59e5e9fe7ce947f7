/** Dragoman with its embedded database. */
import type { Entrant } from './contestant.ts';
import { openDragoman } from './dragoman.ts';

export const dragomanEmbedded: Entrant = {
  missing: () => undefined,
  open: (place) => openDragoman('dragoman, embedded', place, {}),
};
