/** Waits for events instead of time: `until` checks again after every `happened`, and at its deadline fails with the events so far. */
export interface Watch {
  happened(): void;
  /** Resolves with the first answer that is not false, null or undefined; rejects when `look` throws, or after `within` milliseconds. */
  until<Seen>(look: () => Seen, within: number, story: () => string): Promise<Exclude<Seen, false | null | undefined>>;
}

export function watch(): Watch {
  let waiting: (() => void)[] = [];
  return {
    happened() {
      for (const again of waiting) again();
    },
    until<Seen>(look: () => Seen, within: number, story: () => string) {
      return new Promise<Exclude<Seen, false | null | undefined>>((resolve, reject) => {
        const over = () => {
          clearTimeout(deadline);
          waiting = waiting.filter((one) => one !== again);
        };
        const again = () => {
          try {
            const seen = look();
            if (seen === false || seen === null || seen === undefined) return;
            over();
            resolve(seen as Exclude<Seen, false | null | undefined>);
          } catch (error) {
            over();
            reject(error);
          }
        };
        const deadline = setTimeout(() => {
          over();
          reject(new Error(`Not within ${within} ms. ${story()}`));
        }, within);
        waiting = [...waiting, again];
        again();
      });
    },
  };
}
