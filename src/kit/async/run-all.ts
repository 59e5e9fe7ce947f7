/**
 * Runs steps one after the other, even if earlier ones failed: for shutdowns, where one failure must not prevent the other steps.
 * @throws the first failure, after all steps have run
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
