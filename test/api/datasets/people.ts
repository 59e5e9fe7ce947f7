import { person, visited, type Answer, type Person, type Visited } from '../native/visitors.ts';
import type { Place } from '../../support/databases.ts';
import type { TestServerSettings } from '../../support/server.ts';

export type { Answer, Person };

/** A server with two users who know nothing of each other. */
export async function twoPeople(place: Place, more: TestServerSettings = {}) {
  return twoPeopleOf(await visited(place, more));
}

/** Two such users of a server that runs. */
export async function twoPeopleOf(all: Visited) {
  return { all, ada: await person(all), bob: await person(all) };
}

/** A new dataset. @returns its full name */
export async function newDataset({ ask }: Person, name: string): Promise<string> {
  const { body, status } = await ask('POST', '/user/add-dataset', { dataset: name });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body['dataset'] as string;
}

/** The id of a dataset under `/server/mine`. */
export async function idOf({ ask }: Person, fullName: string): Promise<number> {
  const { body } = await ask('POST', '/server/get-dataset-info', { dataset: fullName });
  return (body['response'] as { id: number }).id;
}
