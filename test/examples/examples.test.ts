import { expect, test } from 'vitest';
import { examples } from '../../src/faces/monitoring/examples.ts';
import { startTestServer } from '../support/server.ts';
import { madeExamples } from './examples.ts';
import { without } from './requests.ts';

test('the examples of /docs are what a server answers: npm run examples writes them', async () => {
  const server = await startTestServer();
  try {
    expect(JSON.parse(JSON.stringify(await madeExamples(server)))).toEqual(examples);
    const { paths } = (await (await server.ask('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { operationId: string; 'x-alias-of'?: string }>>;
    };
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const main = operations.flatMap((one) => (one['x-alias-of'] === undefined ? [one.operationId] : []));
    expect(main).toEqual(expect.arrayContaining([...Object.keys(examples), ...Object.keys(without)]));
  } finally {
    await server.close();
  }
}, 120_000);
