import { expect, test } from 'vitest';
import { cpuMilliseconds, longestStretch, slowness, unscaledCpuMilliseconds } from './cpu-time.ts';

/** Works for so many milliseconds of CPU time of the machine that limits are written for. */
function work(milliseconds: number): void {
  const { user, system } = process.threadCpuUsage();
  const end = user + system + milliseconds * 1000 * slowness();
  for (let used = 0; used < end;) {
    const now = process.threadCpuUsage();
    used = now.user + now.system;
  }
}

test('what takes 200 ms on the machine that limits are written for is measured as that, however slow this one is', () => {
  expect(cpuMilliseconds(() => work(200))).toSatisfy((one: number) => one > 150 && one < 300);
  expect(unscaledCpuMilliseconds(() => work(200))).toBeGreaterThan(150);
});

test('so is a stretch between others, not the time that they take together', async () => {
  const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
  const stretches = async () => {
    for (const milliseconds of [50, 200, 50]) {
      work(milliseconds);
      await turn();
    }
  };
  expect(await longestStretch(stretches)).toSatisfy((one: number) => one > 150 && one < 260);
});
