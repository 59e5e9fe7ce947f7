import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The figures of the house, for Prometheus. Label values are names of ours: never a user, a key or what a client wrote. */
export interface Metrics {
  answered(face: string, route: string, status: number, milliseconds: number): void;
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** The Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

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
    contentType: registry.contentType,
  };
}
