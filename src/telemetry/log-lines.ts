import { write } from 'node:fs';

/** Lines on their way to a file descriptor. */
export interface LogLines {
  /** Takes a line with its LF; it is left out while too much waits. */
  add(line: string): void;
  flush(): void;
  /** Resolves when all that was added is written, or cannot be. */
  written(): Promise<void>;
}

const againMilliseconds = 50;

/**
 * Gathers lines and writes them in pieces of whole lines. A list that is joined once: a library that kept one growing text made a flat copy of it for every
 * line, 8 KB a request.
 * @param pieceBytes written at once at most, but for a line that is longer
 * @param mostWaiting bytes that wait for a reader who has stopped; later lines are left out
 * @param leftOut the line in place of `count` lines that were left out
 */
export function logLines(
  descriptor: number,
  { pieceBytes, mostWaiting, leftOut }: { pieceBytes: number; mostWaiting: number; leftOut: (count: number) => string },
): LogLines {
  let lines: string[] = [];
  let waiting = 0;
  let missing = 0;
  let writing: Buffer | undefined;
  const all: (() => void)[] = [];

  const take = (line: string): void => {
    lines.push(line);
    waiting += Buffer.byteLength(line);
  };

  const next = (): void => {
    if (writing) return;
    if (missing > 0 && waiting <= mostWaiting) {
      take(leftOut(missing));
      missing = 0;
    }
    if (lines.length === 0) {
      for (const told of all.splice(0)) told();
      return;
    }
    let count = 0;
    let length = 0;
    while (count < lines.length) {
      const bytes = Buffer.byteLength(lines[count]!);
      if (count > 0 && length + bytes > pieceBytes) break;
      length += bytes;
      count++;
    }
    writing = Buffer.from(count === lines.length ? lines.join('') : lines.slice(0, count).join(''));
    lines = count === lines.length ? [] : lines.slice(count);
    waiting -= length;
    put();
  };

  const put = (): void => {
    write(descriptor, writing!, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(put, againMilliseconds).unref();
        return;
      }
      // Nobody reads any more: that ends no server.
      writing = error || written === writing!.length ? undefined : writing!.subarray(written);
      if (writing) put();
      else if (waiting >= pieceBytes || all.length > 0) next();
    });
  };

  return {
    add(line) {
      if (missing > 0 || waiting > mostWaiting) {
        missing++;
        return;
      }
      take(line);
      if (waiting >= pieceBytes) next();
    },
    flush: next,
    written: () =>
      new Promise((resolve) => {
        all.push(resolve);
        next();
      }),
  };
}
