import type { ByteBudget } from '#kit/memory/byte-budget';
import type { Listening } from '#http/server';
import type { Metrics } from '#telemetry/metrics';
import type { Identity } from '#resources/api-keys/identify';
import type { Accounting } from './accounting.ts';
import type { Calls } from './calls.ts';

export interface GaugesDeps {
  readonly metrics: Metrics;
  readonly accounting: Pick<Accounting, 'pending'>;
  readonly calls: Pick<Calls, 'ledger' | 'regions' | 'cooling' | 'runtime'>;
  readonly identity: Pick<Identity, 'known' | 'bad'>;
  readonly budget: Pick<ByteBudget, 'held'>;
  readonly listening: Pick<Listening, 'inFlight' | 'waiting' | 'connections'>;
}

/** Registers the state of this process as metrics, read when they are scraped. */
export function registerGauges({ metrics, accounting, calls, identity, budget, listening }: GaugesDeps): void {
  metrics.gauge('dragoman_usage_rows_waiting', 'Usage rows not yet written to the database.', () => accounting.pending);
  metrics.gauge('dragoman_limited_accounts', 'Limited accounts held in memory.', () => calls.ledger.accounts);
  metrics.gauges('dragoman_region_ok', 'Whether a region is healthy for a model: 1 if it is, otherwise 0.', ['provider', 'region', 'model'], () =>
    calls.regions().map(({ provider, region, model, state }) => ({ labels: { provider, region, model }, value: state === 'ok' ? 1 : 0 })),
  );
  metrics.gauges(
    'dragoman_region_latency_seconds',
    'Moving average of the time to the first event of an answer, in seconds.',
    ['provider', 'region', 'model'],
    () =>
      calls
        .regions()
        .flatMap(({ provider, region, model, latencyMs }) => (latencyMs === null ? [] : [{ labels: { provider, region, model }, value: latencyMs / 1000 }])),
  );
  metrics.gauges('dragoman_targets_cooling', 'Targets of a provider that are cooling down after failures.', ['provider'], () =>
    Array.from(calls.cooling(), ([provider, value]) => ({ labels: { provider }, value })),
  );
  metrics.gauge('dragoman_kept_answer_bytes', 'Memory used by cached answers, in bytes.', () => calls.runtime().answers.bytes);
  metrics.gauge('dragoman_known_credentials', 'Valid credentials in the cache.', () => identity.known);
  metrics.gauge('dragoman_bad_credentials', 'Invalid credentials in the cache.', () => identity.bad);
  metrics.gauge('dragoman_requests_in_flight', 'Requests in flight.', () => listening.inFlight());
  metrics.gauge('dragoman_requests_waiting', 'Requests in flight that wait for their turn.', () => listening.waiting());
  metrics.gauge(
    'dragoman_held_bytes',
    'Memory held by requests (bodies and what is made of them, fetched media, buffered answers), in bytes.',
    () => budget.held,
  );
  metrics.gauge('dragoman_client_connections', 'Open client connections.', () => listening.connections());
}
