import type { Target, WeightedTarget } from '#core/target';
import { lotOf } from './affinity.ts';
import type { LatencyStats } from './latency-stats.ts';

/** Whether the order of these targets can differ from call to call. A listed order is fixed. */
export function hasChoice(targets: readonly WeightedTarget[]): boolean {
  for (const { weight, order, others } of targets)
    if ((weight !== undefined && targets.length > 1) || (order === 'fastest' && others !== undefined && others.length > 0)) return true;
  return false;
}

export interface OrderDeps {
  readonly chance: () => number;
  readonly latency: LatencyStats;
  /** Outliers are tried last. */
  readonly ejects: boolean;
}

/**
 * The order in which to try the targets of a model, as a new list: weighted targets first, in random order by weight, then the others as listed.
 * @param affinity the hash of a conversation, which fixes its order; absent: random
 */
export function ordered(targets: readonly WeightedTarget[], affinity: number | undefined, deps: OrderDeps): Target[] {
  if (targets.length === 1) return [...places(targets[0]!, affinity, deps)];
  const weighted = targets.filter(({ weight }) => weight !== undefined);
  const rest = weighted.length === 0 ? targets : targets.filter(({ weight }) => weight === undefined);
  const lots = affinity === undefined ? byChance(weighted, deps.chance) : byAffinity(weighted, affinity);
  return [...outliersLast(lots, ({ target }) => target, deps), ...rest].flatMap((group) => places(group, affinity, deps));
}

function byChance(weighted: readonly WeightedTarget[], chance: () => number): WeightedTarget[] {
  const pool = [...weighted];
  const order: WeightedTarget[] = [];
  while (pool.length > 0) {
    let lot = chance() * pool.reduce((sum, { weight = 0 }) => sum + weight, 0);
    const at = Math.max(
      0,
      pool.findIndex(({ weight = 0 }) => (lot -= weight) < 0),
    );
    order.push(...pool.splice(at, 1));
  }
  return order;
}

/** A fixed order per conversation that follows the weights over all conversations (weighted rendezvous hashing). */
function byAffinity(weighted: readonly WeightedTarget[], affinity: number): WeightedTarget[] {
  const scored = weighted.map((group) => ({ group, score: Math.log(lotOf(affinity, group.target.name)) / group.weight! }));
  return scored.toSorted((a, b) => b.score - a.score).map(({ group }) => group);
}

function outliersLast<Of>(order: readonly Of[], targetOf: (one: Of) => Target, { latency, ejects }: OrderDeps): readonly Of[] {
  if (!ejects || order.length < 2) return order;
  const outliers = latency.outliers(order.map(targetOf));
  if (outliers.size === 0) return order;
  const isOut = (one: Of) => outliers.has(targetOf(one).name);
  if (isOut(order[0]!) && latency.mayReturn(targetOf(order[0]!).name)) return order;
  return [...order.filter((one) => !isOut(one)), ...order.filter(isOut)];
}

function places({ target, others, order }: WeightedTarget, affinity: number | undefined, deps: OrderDeps): readonly Target[] {
  if (!others || others.length === 0) return [target];
  const all = [target, ...others];
  return order === 'fastest' ? outliersLast(deps.latency.sorted(all, affinity), (one) => one, deps) : all;
}
