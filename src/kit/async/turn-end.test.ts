import { expect, test } from 'vitest';
import { afterPoll, atTurnEnd, lastInTurn } from './turn-end.ts';

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

test('what has arrived goes on together, step by step, before anything is written down', async () => {
  const order: string[] = [];
  const goOn = async (name: string) => {
    order.push(`${name} begins`);
    await Promise.resolve();
    order.push(`${name} goes on`);
    atTurnEnd(() => order.push(`${name} is written`));
  };
  lastInTurn(() => order.push('sent'));
  afterPoll(() => void goOn('one'));
  afterPoll(() => void goOn('other'));
  expect(order).toEqual([]);
  await turn();
  expect(order).toEqual(['one begins', 'other begins', 'one goes on', 'other goes on', 'one is written', 'other is written', 'sent']);
});

test('what is added at the end of a turn runs at the end of the next one at the latest', async () => {
  const order: string[] = [];
  atTurnEnd(() => {
    atTurnEnd(() => order.push('written again'));
    afterPoll(() => order.push('arrived late'));
    lastInTurn(() => order.push('sent in the same turn'));
  });
  lastInTurn(() => lastInTurn(() => order.push('sent again')));
  await turn();
  await turn();
  expect(order).toEqual(['sent in the same turn', 'arrived late', 'written again', 'sent again']);
});
