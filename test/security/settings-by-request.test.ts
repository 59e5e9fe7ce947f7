/* What only the operator says: the environment, programs and places on the disk. */
import { expect, test } from 'vitest';
import { anyPlace } from '../support/databases.ts';
import { proves } from '../support/proves.ts';
import { person, visited } from '../api/native/visitors.ts';

type Schema = Readonly<Record<string, unknown>>;

/** The names of all members that something of a document may have, in whatever depth. */
function* namesIn(value: unknown, schemas: Schema, seen = new Set<unknown>()): Generator<string> {
  if (value === null || typeof value !== 'object' || seen.has(value)) return;
  seen.add(value);
  const { properties, $ref: reference } = value as { properties?: Schema; $ref?: string };
  if (properties && typeof properties === 'object') yield* Object.keys(properties);
  if (typeof reference === 'string') yield* namesIn(schemas[reference.split('/').at(-1)!], schemas, seen);
  for (const inner of Object.values(value)) yield* namesIn(inner, schemas, seen);
}

const ofMachine =
  /^(env|environment|path|cwd|root|command|cmd|args|argv|exec|shell|program|binary|module|preload|require|node_?options|ld_\w+|\w*(folder|dir|directory|file_?path|ca_?file))$/i;
/** `folder`: of a source of a dataset, for administrators, within `sources.folders`. `args`: of a call in a conversation of Gemini's dialect. */
const harmless = new Set(['folder', 'args']);

test(proves('P-15', 'no field of a request names a variable of the environment, a program or a place on the disk, and none changes one'), async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  interface Operation {
    readonly requestBody?: unknown;
    readonly parameters?: readonly { readonly name: string }[];
  }
  const { paths, components } = (await all.admin('GET', '/openapi.json')).body as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Schema };
  };
  const { schemas } = components;
  const known = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ requestBody }) => [...namesIn(requestBody, schemas)]));
  expect(known).toEqual(expect.arrayContaining(['folder', 'plugin_values', 'instructions', 'server_url'])); // the document has them at their places
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody, parameters = [] }]) =>
      [...namesIn(requestBody, schemas), ...parameters.map(({ name }) => name)]
        .filter((name) => ofMachine.test(name) && !harmless.has(name))
        .map((name) => `${method} ${path}: ${name}`),
    ),
  );
  expect([found, Object.keys(paths).length > 100]).toEqual([[], true]);

  const before = JSON.stringify([process.env, process.execArgv, process.cwd()]);
  const things = {
    'mcp-servers': { name: 's', url: 'https://mcp.example/mcp' },
    plugins: { plugin_name: 'p', title: 'P', kind: 'prompt', template: 'Hello' },
    agents: { name: 'A', mode: 'single', instructions: 'Work.' },
    personas: { name: 'P', prompt: 'Hello' },
    secrets: { name: 'S', value: 'v' },
  };
  for (const [noun, thing] of Object.entries(things))
    for (const more of [
      { env: { PATH: '/tmp', NODE_OPTIONS: '--require /tmp/x', LD_PRELOAD: '/tmp/x.so' } },
      { PATH: '/tmp' },
      { command: '/bin/sh' },
      { cwd: '/' },
    ])
      expect([noun, more, (await ada.ask('POST', `/server/mine/${noun}`, { ...thing, ...more })).status]).toEqual([noun, more, 400]);
  for (const path of ['/server/admin/settings', '/server/admin/environment', '/server/mine/settings', '/server/settings', '/server/update-env'])
    for (const who of [all.admin, ada.ask])
      for (const method of ['POST', 'PUT', 'PATCH'])
        expect([path, (await who(method, path, { NODE_OPTIONS: '--require /tmp/x' })).status]).toEqual([path, 404]);
  expect((await ada.ask('PATCH', '/server/mine', { env: {} })).status).toBeGreaterThanOrEqual(400);
  expect(JSON.stringify([process.env, process.execArgv, process.cwd()])).toBe(before);
});
