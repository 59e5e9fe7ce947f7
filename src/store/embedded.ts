import type { Clock } from '#kit/async/clock';
import type { Answer, Line, Lines } from '#store/driver';
import type { Engine } from '#store/engine';
import { overloaded } from '#store/sql-error';

/** Milliseconds after which an idle transaction is rolled back: all other statements wait for it. */
const idleMilliseconds = 10_000;

/**
 * Many lines over the one connection of the embedded database. Single statements go out as they come, many at once;
 * a transaction waits for its turn and then has the connection for itself.
 */
export function turns(engine: Engine, clock: Clock): (seconds: number) => Lines {
  const waiting: (() => void)[] = [];
  let holder: Line | undefined;

  function turn(line: Line, holds: boolean, milliseconds: number): Promise<void> {
    if (holder === undefined || holder === line) {
      if (holds) holder = line;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        stop();
        if (holds) holder = line;
        resolve();
      };
      const stop = clock.after(milliseconds, () => {
        waiting.splice(waiting.indexOf(go), 1);
        reject(overloaded('The database is busy with a transaction.'));
      });
      waiting.push(go);
    });
  }

  function next(): void {
    holder = undefined;
    while (waiting.length > 0 && holder === undefined) waiting.shift()!();
  }

  return (seconds) => {
    const milliseconds = seconds * 1000;
    return { take: async () => lineOf(milliseconds), close: async () => {} };
  };

  function lineOf(milliseconds: number): Line {
    let epoch: number | undefined;
    let stopIdle = () => {};
    let underway = 0;
    const line: Line = {
      async query(text, parameters): Promise<Answer> {
        if (epoch !== undefined) return held(text, parameters);
        await turn(line, false, milliseconds);
        return engine.send(text, parameters, milliseconds);
      },
      async hold() {
        await turn(line, true, milliseconds);
        epoch = engine.epoch;
        watch();
      },
      release() {
        if (epoch === undefined) return;
        stopIdle();
        epoch = undefined;
        if (holder === line) next();
      },
    };
    return line;

    async function held(text: string, parameters: readonly unknown[]): Promise<Answer> {
      if (holder !== line) throw overloaded('A transaction was left waiting too long.');
      if (epoch !== engine.epoch) throw overloaded('The database had to be opened again.');
      stopIdle();
      underway++;
      try {
        return await engine.send(text, parameters, milliseconds);
      } finally {
        if (--underway === 0) watch();
      }
    }

    function watch(): void {
      if (epoch === undefined) return;
      stopIdle = clock.after(idleMilliseconds, () => {
        engine.send('rollback', [], milliseconds).catch(() => {});
        if (holder === line) next();
      });
    }
  }
}
