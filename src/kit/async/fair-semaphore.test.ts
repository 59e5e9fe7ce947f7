import { describe, expect, test } from 'vitest';
import { openFairSemaphore, QueueFull, type Bounds } from './fair-semaphore.ts';

const { signal } = new AbortController();
const plenty = { jobs: Infinity, size: Infinity };
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A semaphore on a clock that only the work moves: a piece of size n takes n milliseconds. */
function opened(bounds: Partial<Bounds> = {}) {
  let now = 0;
  const semaphore = openFairSemaphore({ each: 1, all: 1, unfinished: { each: plenty, all: plenty }, ...bounds }, { monotonic: () => now });
  const done: string[] = [];
  const work = (name: string, size: number) => async () => {
    now += size;
    await settled();
    done.push(name);
  };
  const run = (owner: string, name: string, size: number, asking = signal) => semaphore.run({ owner, size, signal: asking }, work(name, size));
  const inPieces = (owner: string, name: string, sizes: readonly number[], asking = signal) =>
    semaphore.runInPieces({ owner, size: sizes.reduce((sum, size) => sum + size, 0), signal: asking }, async (turn) => {
      for (const [at, size] of sizes.entries()) await turn(size, work(`${name}${at}`, size));
    });
  return { semaphore, done, run, inPieces, work };
}

/** Work that ends when it is told to. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { work: () => promise, end: resolve };
}

describe('the next turn', () => {
  test('goes from owner to owner, whoever asked for more', async () => {
    const { done, run } = opened();
    await Promise.all([run('a', 'a1', 5), run('a', 'a2', 5), run('a', 'a3', 5), run('b', 'b1', 5), run('b', 'b2', 5), run('c', 'c1', 5)]);
    expect(done).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('goes to the smallest of the owners that came together', async () => {
    const { done, run } = opened();
    await Promise.all([run('a', 'first', 1), run('b', 'large', 500), run('c', 'medium', 50), run('d', 'small', 5)]);
    expect(done).toEqual(['first', 'small', 'medium', 'large']);
  });

  test('is given by the time that was used, and not by the number of turns', async () => {
    const { done, run } = opened();
    const small = Array.from({ length: 10 }, (_, at) => run('b', `b${at}`, 10));
    await Promise.all([run('a', 'a0', 40), run('a', 'a1', 40), run('a', 'a2', 40), ...small]);
    expect(done.indexOf('a1')).toBeGreaterThanOrEqual(5);
    expect(done.indexOf('a2')).toBeGreaterThanOrEqual(9);
  });

  test('comes before the next piece of a large job, also of a job of the same owner', async () => {
    const { done, run, inPieces } = opened();
    const large = inPieces(
      'a',
      'large',
      Array.from({ length: 50 }, () => 10),
    );
    await settled();
    await Promise.all([run('b', 'other', 3), run('a', 'own', 3)]);
    expect(done.length).toBeLessThanOrEqual(6);
    await large;
    expect(done).toHaveLength(52);
  });

  test('comes sooner to a newcomer than to those who have been served for long', async () => {
    const { done, run, inPieces } = opened();
    const heavy = ['a', 'b', 'c', 'd'].map((owner) =>
      inPieces(
        owner,
        owner,
        Array.from({ length: 20 }, () => 10),
      ),
    );
    while (done.length < 20) await settled();
    const before = done.length;
    await run('e', 'newcomer', 1);
    expect(done.indexOf('newcomer')).toBeLessThanOrEqual(before + 1);
    await Promise.all(heavy);
  });

  test('comes first to an urgent job, until its owner was served a second longer than others who wait', async () => {
    const { semaphore, done, inPieces, work } = opened();
    const long = Array.from({ length: 30 }, () => 100);
    const heavy = [...['a', 'b', 'c'].map((owner) => inPieces(owner, owner, long)), inPieces('a', 'again', long)];
    while (done.length < 20) await settled();
    const urgent = (name: string, size: number) => semaphore.run({ owner: 'a', size, signal, isUrgent: true }, work(name, size));
    const before = done.length;
    await urgent('question', 500);
    expect(done.indexOf('question')).toBeLessThanOrEqual(before + 1);
    const flood = Array.from({ length: 40 }, (_, at) => urgent(`flood${at}`, 500));
    await Promise.all([...heavy, ...flood]);
    expect(done.indexOf('b29')).toBeLessThan(done.indexOf('flood20'));
    expect(done.indexOf('c29')).toBeLessThan(done.indexOf('flood20'));
  });

  test('is one of few at a time for each owner, and of few in all', async () => {
    const { semaphore } = opened({ each: 2, all: 3 });
    const running: string[] = [];
    const jobs = ['a', 'a', 'a', 'b', 'b', 'b'].map((owner) => {
      const { work, end } = held();
      const ended = semaphore.run({ owner, size: 1, signal }, () => {
        running.push(owner);
        return work();
      });
      return { end, ended };
    });
    await settled();
    expect(running).toEqual(['a', 'a', 'b']);
    jobs[0]!.end();
    await settled();
    expect(running.slice(3)).toEqual(['b']);
    for (const { end } of jobs) end();
    await Promise.all(jobs.map(({ ended }) => ended));
    expect(running.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b', 'b']);
  });
});

describe('a job', () => {
  const few = { each: { jobs: 2, size: 100 }, all: { jobs: 6, size: 250 } };

  test('is refused where its owner has too many unfinished, and another owner is not', async () => {
    const { run } = opened({ unfinished: few });
    const all = [run('a', 'a1', 1), run('a', 'a2', 1)];
    await expect(run('a', 'a3', 1)).rejects.toMatchObject({ name: 'QueueFull', whose: 'owner' });
    await Promise.all([...all, run('b', 'b1', 1)]);
    await run('a', 'a4', 1);
  });

  test('is refused where those of its owner hold too much, and let in alone whatever its size', async () => {
    const { run } = opened({ unfinished: few });
    const large = run('a', 'large', 180);
    await expect(run('a', 'small', 1)).rejects.toBeInstanceOf(QueueFull);
    await large;
  });

  test('is refused where everybody together holds too much, but not that of an owner who holds less than a share', async () => {
    const { run } = opened({ unfinished: few });
    const large = [run('a', 'a', 100), run('b', 'b', 100)];
    await expect(run('c', 'large', 120)).rejects.toMatchObject({ whose: 'all' });
    await Promise.all([...large, run('c', 'small', 60)]);
  });

  test('of an owner without any other is let in when the places of all are taken by one', async () => {
    const { run } = opened({ unfinished: { each: plenty, all: { jobs: 3, size: 1000 } } });
    const many = [run('a', 'a1', 1), run('a', 'a2', 1), run('a', 'a3', 1)];
    await expect(run('a', 'a4', 1)).rejects.toMatchObject({ whose: 'all' });
    await Promise.all([...many, run('b', 'b1', 1)]);
  });

  test('that waits is left out when its client leaves, with the reason', async () => {
    const { done, run } = opened();
    const client = new AbortController();
    const first = run('a', 'first', 1);
    const waiting = run('b', 'waiting', 1, client.signal);
    client.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await first;
    await run('c', 'last', 1);
    expect(done).toEqual(['first', 'last']);
  });

  test('in pieces ends before its next piece when its client leaves', async () => {
    const { done, run, inPieces } = opened();
    const client = new AbortController();
    const large = inPieces('a', 'a', [1, 1, 1, 1, 1, 1], client.signal);
    while (done.length < 2) await settled();
    client.abort(new Error('gone'));
    await expect(large).rejects.toThrow('gone');
    expect(done.length).toBeLessThan(5);
    await run('a', 'next', 1);
  });

  test('that fails gives its turn to the next', async () => {
    const { semaphore, run, done } = opened();
    const failing = semaphore.run({ owner: 'a', size: 1, signal }, () => Promise.reject(new Error('failed')));
    const next = run('a', 'next', 1);
    await expect(failing).rejects.toThrow('failed');
    await next;
    expect(done).toEqual(['next']);
  });

  test('is given up when the semaphore closes, whether it waits or comes later', async () => {
    const { semaphore, run } = opened();
    const { work, end } = held();
    const running = semaphore.run({ owner: 'a', size: 1, signal }, work);
    const waiting = run('b', 'b', 1);
    semaphore.close(new Error('closing'));
    await expect(waiting).rejects.toThrow('closing');
    await expect(run('c', 'c', 1)).rejects.toThrow('closing');
    end();
    await running;
  });
});
