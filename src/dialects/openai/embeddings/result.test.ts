import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EmbedCall } from '#core/embed';
import { changed, drawnChanges } from '../../../../test/support/drawn-changes.ts';
import { decodeResult, plainAnswer } from './result.ts';
import { cpuMilliseconds } from '../../../../test/support/cpu-time.ts';

const call = (encoding: EmbedCall['encoding'], count = 2): EmbedCall => ({ model: 'm', inputs: Array.from({ length: count }, () => 'x'), encoding });
const base64 = (numbers: readonly number[]) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64');
const list = (vectors: readonly unknown[]) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'm',
  usage: { prompt_tokens: 3, total_tokens: 3 },
});
const answers = {
  float: list([
    [0.1, -2e-3],
    [3, 0],
  ]),
  base64: list([base64([0.1, 0.2]), base64([0.3, 0.4])]),
};
const bytesOf = (value: unknown, space = 0) => Buffer.from(JSON.stringify(value, undefined, space));

describe.each(['float', 'base64'] as const)('an answer in %s', (encoding) => {
  test('may be forwarded, with white space too, and says its usage', () => {
    for (const space of [0, 2])
      expect(plainAnswer([bytesOf(answers[encoding], space)], call(encoding))).toEqual({ usage: { input: 3, output: 0, source: 'provider' } });
  });

  test('may be forwarded wherever it is cut into pieces', () => {
    const bytes = bytesOf(answers[encoding], 1);
    for (let size = 1; size <= bytes.length; size++) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
      expect(plainAnswer(pieces, call(encoding)), `pieces of ${size}`).toBeDefined();
      expect(plainAnswer(pieces.slice(0, -1), call(encoding)), `without the last of ${size}`).toBeUndefined();
    }
  });

  test('is not forwarded in the other encoding, cut anywhere, or with other bytes behind it', () => {
    const bytes = bytesOf(answers[encoding]);
    expect(plainAnswer([bytes], call(encoding === 'float' ? 'base64' : 'float'))).toBeUndefined();
    for (let at = 0; at < bytes.length; at++) expect(plainAnswer([bytes.subarray(0, at)], call(encoding))).toBeUndefined();
    for (const more of ['x', '}', '{}']) expect(plainAnswer([bytes, Buffer.from(more)], call(encoding))).toBeUndefined();
  });

  test('that may be forwarded says the same when it is decoded', async () => {
    const members = ['object', 'data', 'usage', 'usage.prompt_tokens', 'data.0', 'data.1', 'data.0.index', 'data.1.index', 'data.0.object'];
    const vectors = ['data.0.embedding', 'data.1.embedding', ...(encoding === 'float' ? ['data.0.embedding.0', 'data.1.embedding.1'] : [])];
    let plain = 0;
    await fc.assert(
      fc.asyncProperty(drawnChanges([...members, ...vectors]), async (changes) => {
        const body = changed(answers[encoding], changes);
        const passed = plainAnswer([bytesOf(body)], call(encoding));
        if (!passed) return;
        plain++;
        const { usage, answer } = await decodeResult(bytesOf(body), call(encoding), 'm');
        expect(passed.usage).toEqual(usage);
        expect(answer).toEqual({ vectors: (body as typeof answers.float).data.map(({ embedding }) => embedding) });
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(20);
  });
});

test('an answer of vLLM, which has its members in another order, may be forwarded too', () => {
  const { data, ...others } = answers.float;
  const other = data.map(({ object, index, embedding }) => ({ index, object, embedding }));
  const answer = { id: 'embd-1', object: 'list', created: 1, model: 'm', data: other, usage: others.usage };
  expect(plainAnswer([bytesOf(answer)], call('float'))).toEqual({ usage: { input: 3, output: 0, source: 'provider' } });
  const nameless = data.map(({ index, embedding }) => ({ index, embedding }));
  expect(plainAnswer([bytesOf({ ...answer, data: nameless })], call('float'))).toBeUndefined();
});

test('the numbers of 256 vectors are not parsed', () => {
  const bytes = bytesOf(list(Array.from({ length: 256 }, () => Array.from({ length: 1536 }, (_, at) => Math.sin(at)))));
  const took = Array.from({ length: 5 }, () => cpuMilliseconds(() => expect(plainAnswer([bytes], call('float', 256))).toBeDefined()));
  expect(Math.min(...took)).toBeLessThan(20);
});
