/**
 * The end of a turn of the event loop, when all that had arrived was looked at. First comes what is to be written down (`atTurnEnd`), then everything that waited
 * for it, then what is to be sent (`lastInTurn`): one write then serves all calls of the turn, and what a client is told in a turn leaves in one piece.
 */
let first: (() => void)[] = [];
let last: (() => void)[] = [];
let isDue = false;

export function atTurnEnd(run: () => void): void {
  first.push(run);
  awaitEnd();
}

/** Runs at the end of this turn, after all `atTurnEnd` and the promises that they resolve. */
export function lastInTurn(run: () => void): void {
  last.push(run);
  awaitEnd();
}

function awaitEnd(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(runFirst);
  setImmediate(runLast); // promises that the one before has resolved go first
}

function runFirst(): void {
  const all = first;
  first = [];
  for (const run of all) run();
}

function runLast(): void {
  const all = last;
  last = [];
  isDue = false;
  for (const run of all) run();
  if (first.length + last.length > 0) awaitEnd();
}
