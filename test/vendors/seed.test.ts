import { expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

const { vendors, server } = await scriptedVendors();

/** https://docs.mistral.ai/api/endpoint/chat */
test.each([
  ['chat', { seed: 7 }],
  ['chat', { random_seed: 7 }],
  ['gencompat', { generationConfig: { seed: 7 } }],
] as const)('a seed reaches Mistral under its own name for it (%s, %j)', async (face, more) => {
  for (const stream of [false, true]) {
    vendors.reset();
    const { status, headers } = await askFace(server, face, { model: 'mistral-large-latest', content: 'hi', stream, more });
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    expect(vendors.requests[0]?.body).toMatchObject({ random_seed: 7 });
    expect(vendors.requests[0]?.body).not.toHaveProperty('seed');
  }
});

test('a seed that Mistral refuses is named as the client wrote it', async () => {
  const { status, raw } = await askFace(server, 'chat', { model: 'mistral-large-latest', content: 'hi', stream: false, more: { seed: -1 } });
  expect([status, raw]).toEqual([400, expect.stringContaining('did not accept seed (422')]);
});
