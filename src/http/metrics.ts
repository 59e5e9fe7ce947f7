import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client';

/** The figures of the house, for Prometheus. Label values are names of ours: never a user, a key or what a client wrote. */
export interface Metrics {
  answered(face: string, route: string, status: number, milliseconds: number): void;
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** The Prometheus text format. */
  text(): Promise<string>;
  /** The same as values, to be summed with those of other processes. */
  figures(): Promise<Figures>;
  readonly contentType: string;
}

/** What one process has counted. Can be sent to another process. */
export type Figures = readonly Figure[];
type Figure = MetricObjectWithValues<MetricValue<string>>;

const buckets = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export function openMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const labelNames = ['face', 'route', 'status'] as const;
  const requests = new Counter({ name: 'dragoman_requests_total', help: 'Answered requests.', labelNames, registers: [registry] });
  const seconds = new Histogram({
    name: 'dragoman_request_seconds',
    help: 'Time from the request to the end of its answer.',
    labelNames: ['face', 'route'],
    buckets,
    registers: [registry],
  });
  // Looking a label up costs more than counting: each combination is looked up once.
  const children = new Map<string, { inc(): void; observe(value: number): void }>();
  return {
    answered(face, route, status, milliseconds) {
      const name = `${face} ${status} ${route}`;
      let child = children.get(name);
      if (!child) {
        const counter = requests.labels(face, route, String(status));
        const timer = seconds.labels(face, route);
        children.set(name, (child = { inc: () => counter.inc(), observe: (value) => timer.observe(value) }));
      }
      child.inc();
      child.observe(milliseconds / 1000);
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
    text: () => registry.metrics(),
    figures: () => registry.getMetricsAsJSON(),
    contentType: registry.contentType,
  };
}

/** The figures of several processes in the Prometheus text format: each figure's help says what was made of the processes' values. */
export function summed(processes: readonly Figures[]): Promise<string> {
  return AggregatorRegistry.aggregate(processes.map((figures) => figures.map(explained))).metrics();
}

/** The figures of several processes as those of one. */
export function merged(processes: readonly Figures[]): Promise<Figures> {
  return AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON();
}

/** What goes on counting after its process has ended: a counter that fell would be read as one that began anew. */
export function counted(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram');
}

function explained(figure: Figure): Figure {
  const words: Readonly<Record<string, string>> = { sum: 'Sum', average: 'Average', min: 'Least', max: 'Most' };
  const word = words[figure.aggregator];
  return word ? { ...figure, help: `${figure.help.replace(/[^.]$/, '$&.')} ${word} over all processes.` } : figure;
}
