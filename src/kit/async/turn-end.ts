/**
 * What one turn of the event loop does, in this order: it looks at all that has arrived; then requests and answers of providers go on, all together (`afterPoll`);
 * then what is to be written down is written (`atTurnEnd`), and everything that waited for it goes on; then what is to be sent leaves (`lastInTurn`).
 *
 * The code and data of one call are more than a core's own cache holds, so calls that take their steps one after the other each load all of it anew. Calls that
 * take each step together load it once (cohort scheduling: Larus and Parkes, 2002): promises run in the order in which they were resolved, so what begins together
 * goes on together, from `await` to `await`. That saves a fifth of the CPU time of a chat under load (`bench/README.md`). One write also serves all calls of a
 * turn, and what a client is told in a turn leaves in one piece. What is put off while the end of a turn runs may have to wait for the next.
 */
let arrived: (() => void)[] = [];
let first: (() => void)[] = [];
let last: (() => void)[] = [];
let isDue = false;

/** Runs as soon as all that has arrived in this turn has been looked at. */
export function afterPoll(run: () => void): void {
  arrived.push(run);
  awaitEnd();
}

/** Runs behind all `afterPoll` of this turn and the promises that they resolve. */
export function atTurnEnd(run: () => void): void {
  first.push(run);
  awaitEnd();
}

/** Runs at the end of this turn, behind all `atTurnEnd` and the promises that they resolve. */
export function lastInTurn(run: () => void): void {
  last.push(run);
  awaitEnd();
}

/** Node runs these in the same turn, and between two of them whatever promises were resolved. */
function awaitEnd(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(runArrived);
  setImmediate(runFirst);
  setImmediate(runLast);
}

function runArrived(): void {
  const all = arrived;
  arrived = [];
  for (const run of all) run();
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
  if (arrived.length + first.length + last.length > 0) awaitEnd();
}
