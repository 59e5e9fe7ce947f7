import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { limitedTime } from './limited-time.ts';

test('time stands still in a rest, and what has ended does not go on after it', () => {
  const clock = testClock();
  let over = 0;
  const time = limitedTime(clock, 1000, () => over++);
  clock.advance(600);
  const goOn = time.rest();
  clock.advance(5000);
  expect(over).toBe(0);
  goOn();
  clock.advance(399);
  expect(over).toBe(0);
  clock.advance(1);
  expect(over).toBe(1);

  const ended = limitedTime(clock, 1000, () => over++);
  const late = ended.rest();
  ended.end();
  late();
  clock.advance(5000);
  expect(over).toBe(1);
});
