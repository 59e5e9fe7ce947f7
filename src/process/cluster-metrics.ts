import type { Clock } from '#kit/async/clock';
import { counted, merged, openMetrics, summed, type Figures, type Metrics } from '#telemetry/metrics';
import { withinASecond } from './ipc.ts';
import type { WorkerHandle } from './worker-handle.ts';

/** The metrics of a server of several processes. */
export interface ClusterMetrics {
  /** Those of this process. */
  readonly own: Metrics;
  /** The sums over all processes, in the Prometheus text format. */
  text(): Promise<string>;
  /** Keeps the counters of a worker that has ended: no sum ever falls. */
  ended(name: string): void;
}

export function openClusterMetrics(clock: Clock, serving: () => readonly WorkerHandle[]): ClusterMetrics {
  const own = openMetrics();
  /** The last figures of each worker. */
  const last = new Map<string, Figures>();
  let ofEnded: Promise<Figures> = Promise.resolve([]);
  const figuresOf = async ({ name, channel }: WorkerHandle): Promise<Figures> => {
    const figures = await withinASecond(clock, channel.ask('figures'));
    if (figures && serving().some((one) => one.name === name)) last.set(name, figures);
    return figures ?? [];
  };
  return {
    own,
    text: async () => summed([await ofEnded, await own.figures(), ...(await Promise.all(serving().map(figuresOf)))]),
    ended(name) {
      const figures = counted(last.get(name) ?? []);
      last.delete(name);
      ofEnded = ofEnded.then((before) => merged([before, figures]));
    },
  };
}
