import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { JobThread } from './job-thread.ts';

test('a thread that cannot be started fails its job, and can be closed and tried again', async () => {
  const thread = new JobThread<string, string>(new URL('https://example.com/no-program.js'), testClock());
  await expect(thread.run('a')).rejects.toThrow();
  await expect(thread.close(new Error('It was idle.'))).resolves.toBeUndefined();
  await new Promise((resolve) => setImmediate(resolve)); // a rejection that nobody handles would end the process here
  await expect(thread.run('b')).rejects.toThrow();
});
