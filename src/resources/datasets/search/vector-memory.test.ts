import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mostDimensions, paddedLength, VectorMemory } from './vector-memory.ts';

const page = (id: number, dimensions: number, vectors: readonly Float32Array[]) => {
  const padded = new Float32Array(vectors.length * paddedLength(dimensions));
  for (const [at, vector] of vectors.entries()) padded.set(vector, at * paddedLength(dimensions));
  return { edition: id, after: 0, ids: Float64Array.from(vectors, (_, at) => at + 1), vectors: padded, next: null };
};
const random = (dimensions: number, seed: number) => Float32Array.from({ length: dimensions }, (_, at) => Math.sin((at + 1) * (seed + 1)));
const productOf = (one: Float32Array, other: Float32Array) => one.reduce((sum, number, at) => sum + number * other[at]!, 0);

test.each([1, 3, 15, 16, 17, 512, 1001, mostDimensions])('multiplies vectors of %i numbers', (dimensions) => {
  const memory = new VectorMemory();
  const vectors = [5, 6, 7].map((seed) => random(dimensions, seed));
  // a longer question, whose numbers would stand behind those of the next
  memory.multiply(random(mostDimensions, 1), memory.put('other', page(1, mostDimensions, [random(mostDimensions, 2)]), 2 ** 20));
  const question = random(dimensions, 3);
  const products = [...memory.multiply(question, memory.put('one', page(2, dimensions, vectors), 2 ** 20))];
  expect(products).toHaveLength(3);
  for (const [at, product] of products.entries()) expect(product).toBeCloseTo(productOf(question, vectors[at]!), 2);
});

test('refuses longer vectors than there is room for', () => {
  const memory = new VectorMemory();
  const slot = memory.put('one', page(1, 1, [random(1, 1)]), 2 ** 20);
  expect(() => memory.multiply(random(mostDimensions + 1, 1), slot)).toThrow(RangeError);
});

test('keeps the newest within its bound, and whatever it keeps is whole', () => {
  const sizes = fc.array(fc.record({ count: fc.integer({ min: 0, max: 40 }), most: fc.constantFrom(4000, 20_000, 60_000) }), { maxLength: 60 });
  fc.assert(
    fc.property(sizes, (puts) => {
      const memory = new VectorMemory();
      const question = random(33, 1);
      const vectorsOf = (id: number, count: number) => Array.from({ length: count }, (_, at) => random(33, 100 * id + at));
      for (const [id, { count, most }] of puts.entries()) {
        memory.put(`${id}`, page(id, 33, vectorsOf(id, count)), most);
        const kept = puts.slice(0, id + 1).flatMap((one, before) => (memory.get(`${before}`) ? [{ id: before, ...one }] : []));
        expect(kept.at(-1)?.id).toBe(id);
        expect(kept.map((one) => one.id)).toEqual(kept.map((_, at) => id + 1 - kept.length + at));
        for (const one of kept) {
          const products = memory.multiply(question, memory.get(`${one.id}`)!);
          const last = vectorsOf(one.id, one.count).at(-1);
          expect(products).toHaveLength(one.count);
          if (last) expect(products.at(-1)).toBeCloseTo(productOf(question, last), 3);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('keeps all that fits, wherever the ring was before', () => {
  const memory = new VectorMemory();
  const ofPage = 40 * 4 * paddedLength(33);
  const most = 5 * Math.ceil(ofPage / 256) * 256;
  for (let id = 0; id < 13; id++) {
    memory.put(
      `before ${id}`,
      page(
        id,
        33,
        Array.from({ length: 1 + (id % 40) }, () => random(33, id)),
      ),
      most,
    );
    for (let one = 0; one < 4; one++)
      memory.put(
        `${id} ${one}`,
        page(
          one,
          33,
          Array.from({ length: 40 }, () => random(33, one)),
        ),
        most,
      );
    expect([0, 1, 2, 3].map((one) => memory.get(`${id} ${one}`)?.edition)).toEqual([0, 1, 2, 3]);
  }
});
