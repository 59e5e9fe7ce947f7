import { atMost, stretch, type Bar, type Row } from './question.ts';
import { median, ratio, type Cost } from './rounds.ts';

/** CPU time as a multiple of each other contestant's; `undefined` for one that was not measured. */
export interface Ratios {
  readonly floor: number | undefined;
  readonly nginx: number | undefined;
  readonly portkey: number | undefined;
}

export type CostBars = (ratios: Ratios) => readonly Bar[];

/** Costs as rows. The bars are for Dragoman with PostgreSQL. With the embedded database, whose worker thread counts, the bar is microseconds above the floor. */
export function costRows(what: string, costs: readonly Cost[], bars: CostBars): Row[] {
  const of = (name: string) => costs.find((cost) => cost.name === name)?.cpu;
  const floor = of('floor');
  const cold = costs.map(({ name, cold }): Row => {
    const first = costs.find((one) => one.name === 'floor')?.cold.cpu;
    return { what: `${what}: the first of this kind`, who: name, value: cold.cpu, note: `${cold.requests} requests`, timesFloor: first && cold.cpu / first };
  });
  const warm = costs.map(({ name, cpu, system, database, warmedBy }): Row => {
    const ratios = { floor: ratio(cpu, floor), nginx: ratio(cpu, of('nginx')), portkey: ratio(cpu, of('portkey')) };
    const above = floor && median(cpu.map((value, round) => value - floor[round]!));
    const embedded = (): Bar[] => [atMost('≤ floor + 100 µs', above, 100), stretch('≤ floor + 40 µs', above, 40)];
    return {
      what,
      who: name,
      value: median(cpu),
      note: `${Math.round(Math.min(...cpu))} to ${Math.round(Math.max(...cpu))}; ${Math.round((100 * median(system)) / median(cpu))} % system; after ${warmedBy}`,
      timesFloor: ratios.floor,
      timesNginx: ratios.nginx,
      ...(name === 'dragoman' && { database: median(database), bars: bars(ratios) }),
      ...(name === 'dragoman, embedded' && { bars: embedded() }),
    };
  });
  return [...warm, ...cold];
}
