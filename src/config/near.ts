/** The most similar of the words, for "Did you mean …?"; undefined if none is similar enough. */
export function nearest(word: string, words: Iterable<string>): string | undefined {
  const most = word.length < 4 ? Math.floor(word.length / 2) : Math.min(3, Math.floor(word.length / 3));
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const one of words) {
    if (Math.abs(one.length - word.length) > most) continue;
    const distance = one.toLowerCase() === word.toLowerCase() ? 0 : edits(word, one);
    if (distance <= most && distance < (best?.distance ?? Infinity)) best = { word: one, distance };
  }
  return best?.word;
}

/** Edit distance: the number of letters to add, drop, change or swap with the next. */
function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  let before = row;
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (let column = 0; column < to.length; column++) {
      const isSwap = at > 0 && column > 0 && letter === to[column - 1] && from[at - 1] === to[column];
      const swapped = isSwap ? before[column - 1]! + 1 : Infinity;
      next.push(Math.min(row[column]! + (to[column] === letter ? 0 : 1), row[column + 1]! + 1, next[column]! + 1, swapped));
    }
    before = row;
    row = next;
  }
  return row[to.length]!;
}
