import { Readable } from 'node:stream';
import type { Settings } from '#config/index';
import { openAdministration } from '#app/administration';
import { openDatabase } from '#app/database';
import type { AdminClient } from './admin-client.ts';
import type { Bytes } from '#http/noun-route';
import { systemClock } from '#kit/async/clock';
import { operator, operatorHere } from '#app/local-token';
import { openPasswords } from '#resources/passwords';
import { openLog, problemsTo } from '#telemetry/log';
import { Fault } from '#core/fault';

/** Administration of the data folder, or of the database that the settings name, without a server: the same routes with the same checks. @throws what `openDatabase` throws */
export async function localAdmin(settings: Settings): Promise<AdminClient> {
  const log = openLog('error');
  const database = await openDatabase(settings, systemClock, log);
  const administration = await openAdministration({
    database,
    settings: () => settings,
    clock: systemClock,
    passwords: openPasswords(systemClock),
    prompts: { find: () => Promise.resolve(undefined) }, // texts are shown by servers alone
    teamsChanged: () => {},
    log: problemsTo(log),
  });
  const ask: AdminClient['ask'] = async (method, path, body) => {
    const { pathname, searchParams: query } = new URL(path, 'http://here');
    for (const route of administration.routes) {
      const params = route.method === method ? paramsOf(route.path, pathname) : undefined;
      if (params) return route.answer({ caller: operator, by: operatorHere, params, query, json: body });
    }
    throw new Fault('not-found', 'There is nothing at this address.');
  };
  return {
    isServer: false,
    ask,
    async download(path) {
      const { content } = (await ask('GET', path)) as Bytes;
      return typeof content === 'string' || content instanceof Uint8Array ? Readable.from([content]) : content;
    },
    async close() {
      administration.close();
      await database.store.close();
      await log.flush();
    },
  };
}

/** The path parameters by name; `undefined` where the path is not this route's. */
function paramsOf(route: string, path: string): Record<string, string> | undefined {
  const [names, words] = [route.split('/'), path.split('/')];
  if (names.length !== words.length || !names.every((name, at) => name.startsWith(':') || name === words[at])) return undefined;
  return Object.fromEntries(names.flatMap((name, at) => (name.startsWith(':') ? [[name.slice(1), decodeURIComponent(words[at]!)]] : [])));
}
