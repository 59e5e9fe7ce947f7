import { expect, test } from 'vitest';
import { atTurnEnd, lastInTurn } from './turn-end.ts';

const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

test('what is to be sent runs after what is to be written down, and after those who waited for that', async () => {
  const order: string[] = [];
  const written = Promise.withResolvers<void>();
  void written.promise
    .then(() => {})
    .then(() => {})
    .then(() => order.push('told'));
  lastInTurn(() => order.push('sent'));
  atTurnEnd(() => {
    order.push('written');
    written.resolve();
  });
  expect(order).toEqual([]);
  await turn();
  expect(order).toEqual(['written', 'told', 'sent']);
});

test('what is added at the end of a turn runs at the end of the next one at the latest', async () => {
  const order: string[] = [];
  atTurnEnd(() => {
    atTurnEnd(() => order.push('written again'));
    lastInTurn(() => order.push('sent in the same turn'));
  });
  lastInTurn(() => lastInTurn(() => order.push('sent again')));
  await turn();
  await turn();
  expect(order).toEqual(['sent in the same turn', 'written again', 'sent again']);
});
