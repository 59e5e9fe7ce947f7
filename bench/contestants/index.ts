/** The contestants: what Dragoman is measured against, and Dragoman itself. */
import { mkdirSync } from 'node:fs';
import type { Postgres } from '../postgres.ts';
import type { Contestant, Entrant, Name, Place } from './contestant.ts';
import { dragoman, dragomanBefore } from './dragoman.ts';
import { dragomanEmbedded } from './dragoman-embedded.ts';
import { floor } from './floor.ts';
import { nginx } from './nginx.ts';
import { portkey } from './portkey.ts';

export type { Contestant, Name } from './contestant.ts';

const contestants: Readonly<Record<Name, Entrant>> = {
  nginx,
  floor,
  portkey,
  dragoman,
  'dragoman, embedded': dragomanEmbedded,
  'dragoman, before': dragomanBefore,
};

/** Why a contestant cannot be measured on this machine; `undefined` if it can. */
export const missing = (name: Name, postgres: Postgres | undefined): string | undefined => contestants[name].missing(postgres);

/** Starts a contestant. It answers when this resolves, but is not warmed up. */
export async function open(name: Name, place: Place): Promise<Contestant> {
  mkdirSync(place.folder, { recursive: true });
  return contestants[name].open(place);
}
