import { expect, test } from 'vitest';
import { onBothDatabases } from '../../../../test/support/databases.ts';
import { migrations } from '../../../../test/support/datasets.ts';
import { openVectorTables } from './vector-tables.ts';

onBothDatabases('the tables of vectors', ({ open }) => {
  test('have as many dimensions as pgvector allows, and refuse more by the name of their model', async () => {
    const tables = openVectorTables(await open({ migrations }));
    expect(await tables.make({ model: 'long', dimensions: 16_000 })).toMatchObject({ model: 'long', dimensions: 16_000 });
    await expect(tables.make({ model: 'longer', dimensions: 16_001 })).rejects.toMatchObject({
      code: 'unprocessable',
      message: 'longer makes vectors of 16001 dimensions; datasets have at most 16000.',
    });
    expect((await tables.all()).map(({ model }) => model)).toEqual(['long']);
  });
});
