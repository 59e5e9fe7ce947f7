import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { expect, test } from 'vitest';
import { examples } from '../../src/faces/monitoring/examples.ts';
import { startTestServer } from '../support/server.ts';
import { madeExamples } from './examples.ts';
import { settings, without } from './requests.ts';

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, TSchema>> };
}

interface Operation {
  readonly operationId: string;
  readonly 'x-alias-of'?: string;
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema: TSchema; readonly example?: unknown }>>;
}

test('each operation has an example, and the examples of /docs are what a server answers: npm run examples writes them', async () => {
  const server = await startTestServer(settings);
  try {
    expect(JSON.parse(JSON.stringify(await madeExamples(server)))).toEqual(examples);
    const { paths, components } = JSON.parse((await (await server.ask('/openapi.json')).text()).replaceAll('"#/components/schemas/', '"')) as OpenApi;
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const main = operations.flatMap((one) => (one['x-alias-of'] === undefined ? [one.operationId] : []));
    const known = [...Object.keys(examples), ...Object.keys(without)];
    expect(main).toEqual(expect.arrayContaining(known));
    expect(
      main.filter((one) => !known.includes(one)),
      'operations that need a request in test/examples, or in `without` the reason why there is none',
    ).toEqual([]);
    const contents = operations.flatMap(({ operationId, requestBody, responses }) =>
      [{ content: requestBody?.content }, ...Object.values(responses)].flatMap(({ content = {} }) =>
        Object.entries(content).map(([type, one]) => ({ at: `${operationId} ${type}`, ...one })),
      ),
    );
    const shown = contents.filter(({ example }) => example !== undefined);
    expect(shown.length).toBeGreaterThan(300);
    const broken = shown.flatMap(({ at, schema, example }) => {
      const errors = Compile(components.schemas, schema).Errors(example);
      return errors.slice(0, 1).map(({ instancePath, message }) => `${at}: ${instancePath} ${message}`);
    });
    expect(broken, 'examples that their own schema refuses').toEqual([]);
    expect(Object.keys(without).filter((one) => Object.hasOwn(examples, one))).toEqual([]);
  } finally {
    await server.close();
  }
}, 120_000);
