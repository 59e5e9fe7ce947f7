import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { callMetrics, type CallMetrics } from './call-metrics.ts';
import { DurationHistogram, Durations } from './durations.ts';

/** The metrics of the server, for Prometheus. Label values are names of ours: never a user, a key or what a client wrote. */
export interface Metrics extends CallMetrics {
  answered(face: string, route: string, status: number, milliseconds: number): void;
  /** New settings were applied, or refused: the old ones stay in effect. */
  reloaded(result: 'applied' | 'refused'): void;
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** The same for several things of one kind, told apart by their labels. */
  gauges(
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[],
  ): void;
  text(): Promise<string>;
  /** The same as values, to be summed with those of other processes. */
  figures(): Promise<Figures>;
  readonly contentType: string;
}

/** What one process has counted. Can be sent to another process. */
export type Figures = readonly Figure[];
type Figure = MetricObjectWithValues<MetricValue<string>>;

export function openMetrics(): Metrics {
  const registry = new Registry();
  const shared = metricsOfProcess();
  for (const { name } of shared.getMetricsAsArray()) registry.registerMetric(shared.getSingleMetric(name)!);
  /** Those of each interface, by their addresses. A name of both would be put together and hashed for each request. */
  const routes = new Map<string, Map<string, Answers>>();
  const all = function* () {
    for (const ofFace of routes.values()) yield* ofFace.values();
  };
  registry.registerMetric(
    new Counter({
      name: 'dragoman_requests_total',
      help: 'Requests answered.',
      labelNames: ['face', 'route', 'status'],
      registers: [],
      collect() {
        this.reset();
        for (const { face, route, statuses } of all()) for (const [status, count] of statuses) this.inc({ face, route, status: String(status) }, count);
      },
    }),
  );
  const help = 'Time from the arrival of a request to the end of its answer, in seconds.';
  registry.registerMetric(
    new DurationHistogram({ name: 'dragoman_request_seconds', help, labelNames: ['face', 'route'] }, () =>
      Array.from(all(), ({ face, route, durations }) => [{ face, route }, durations] as const),
    ),
  );
  const reloads = new Counter({ name: 'dragoman_reloads_total', help: 'Reloads of the settings.', labelNames: ['result'], registers: [registry] });
  for (const result of ['applied', 'refused']) reloads.inc({ result }, 0);
  return {
    ...callMetrics(registry),
    reloaded: (result) => reloads.inc({ result }),
    answered(face, route, status, milliseconds) {
      let ofFace = routes.get(face);
      if (!ofFace) routes.set(face, (ofFace = new Map<string, Answers>()));
      let answers = ofFace.get(route);
      if (!answers) ofFace.set(route, (answers = new Answers(face, route)));
      answers.add(status, milliseconds / 1000);
    },
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read());
        },
      });
    },
    gauges(name, help, labelNames, read) {
      new Gauge({
        name,
        help,
        labelNames,
        aggregator: 'average',
        registers: [registry],
        collect() {
          this.reset();
          for (const { labels, value } of read()) this.set(labels, value);
        },
      });
    },
    text: () => registry.metrics(),
    figures: () => registry.getMetricsAsJSON(),
    contentType: registry.contentType,
  };
}

/** How often the event loop is looked at. Each look wakes an idle process: every 10 ms, the library's default, they cost it 0.7 % of a core. */
const lagMilliseconds = 20;

let ofProcess: Registry | undefined;

/** CPU time, memory and event loop: one for all servers of a process, since what watches the event loop and the garbage collector never stops. */
function metricsOfProcess(): Registry {
  if (!ofProcess) collectDefaultMetrics({ register: (ofProcess = new Registry()), eventLoopMonitoringPrecision: lagMilliseconds });
  return ofProcess;
}

const bounds = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

class Answers {
  readonly face: string;
  readonly route: string;
  readonly statuses = new Map<number, number>();
  readonly durations = new Durations(bounds);

  constructor(face: string, route: string) {
    this.face = face;
    this.route = route;
  }

  add(status: number, seconds: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    this.durations.add(seconds);
  }
}

/** The figures of several processes in the Prometheus text format: each figure's help says what was made of the processes' values. */
export function summed(processes: readonly Figures[]): Promise<string> {
  return AggregatorRegistry.aggregate(processes.map((figures) => figures.map(explained))).metrics();
}

export const merged = (processes: readonly Figures[]): Promise<Figures> => AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON();

/** What goes on counting after its process has ended: a counter that fell would be read as one that began anew. */
export const counted = (figures: Figures): Figures => figures.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram');

function explained(figure: Figure): Figure {
  const words: Readonly<Record<string, string>> = { sum: 'Sum', average: 'Average', min: 'Minimum', max: 'Maximum' };
  const word = words[figure.aggregator];
  return word ? { ...figure, help: `${figure.help.replace(/[^.]$/, '$&.')} ${word} over all processes.` } : figure;
}
