/* Whoever guesses learns nothing from how long the answer takes. */
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { embedded } from '../../support/databases.ts';
import { person, visited } from './visitors.ts';

const rounds = Number(process.env['ROUNDS'] ?? 5000);

test('an unknown address, a wrong key and a suspended user take the same time: medians within 5 %', { timeout: 1_200_000 }, async () => {
  const all = await visited(await embedded.place());
  const [ada, bob] = [await person(all), await person(all)];
  await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'suspended' });
  const key = (n: number) => `${n}`.padStart(64, 'x');
  const kinds: ((n: number) => { email: string; api_key: string })[] = [
    (n) => ({ email: `nobody-${n % 50}@example.org`, api_key: key(n) }),
    (n) => ({ email: ada.email, api_key: key(n) }),
    () => ({ email: bob.email, api_key: bob.key }),
  ];
  const times = kinds.map((): number[] => []);
  for (let n = 0; n < rounds + 200; n++)
    for (const at of [0, 1, 2].map((one) => (one + n) % 3)) {
      const before = performance.now();
      // an address of its own for each round: none of them has ten failures
      expect(await statusFrom(`127.1.${n >> 8}.${n & 255 || 1}`, all.server.url, kinds[at]!(n))).toBe(401);
      if (n >= 200) times[at]!.push(performance.now() - before);
    }
  const medians = times.map((some) => some.toSorted((one, other) => one - other)[Math.floor(some.length / 2)]!);
  expect({ medians, apart: Math.max(...medians) / Math.min(...medians) }).toSatisfy(({ apart }: { apart: number }) => apart < 1.05);
});

function statusFrom(localAddress: string, url: string, pair: object): Promise<number> {
  const body = JSON.stringify(pair);
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const asked = request(`${url}/user/get-token-with-api-key`, { method: 'POST', localAddress, agent: false, headers }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}
