/**
 * Takes steps one after the other, each whatever became of those before: for ends, where one failure must leave nothing else undone.
 *
 * @throws the first failure, when all have been taken
 */
export async function runAll(steps: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
