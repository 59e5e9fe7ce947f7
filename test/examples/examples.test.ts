import { expect, test } from 'vitest';
import { examples } from '../../src/faces/monitoring/examples.ts';
import { startTestServer } from '../support/server.ts';
import { madeExamples } from './examples.ts';
import { settings, without } from './requests.ts';

test('each operation has an example, and the examples of /docs are what a server answers: npm run examples writes them', async () => {
  const server = await startTestServer(settings);
  try {
    expect(JSON.parse(JSON.stringify(await madeExamples(server)))).toEqual(examples);
    const { paths } = (await (await server.ask('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { operationId: string; 'x-alias-of'?: string }>>;
    };
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const main = operations.flatMap((one) => (one['x-alias-of'] === undefined ? [one.operationId] : []));
    const known = [...Object.keys(examples), ...Object.keys(without)];
    expect(main).toEqual(expect.arrayContaining(known));
    expect(
      main.filter((one) => !known.includes(one)),
      'operations that need a request in test/examples, or in `without` the reason why there is none',
    ).toEqual([]);
    expect(Object.keys(without).filter((one) => Object.hasOwn(examples, one))).toEqual([]);
  } finally {
    await server.close();
  }
}, 120_000);
