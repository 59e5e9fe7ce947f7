import type { Metrics } from '#telemetry/metrics';
import type { Done } from '#http/requests';
import type { Clock } from '#kit/async/clock';
import { causeOf, type Log } from '#telemetry/log';

/** One answered request in the log and in the figures. Only what we chose ourselves is written: no address as it came, no header, no body; at level debug the one masked sentence of a provider that its client was told. */
export function requestLine({ log, metrics, clock }: { log: Log; metrics: Metrics; clock: Clock }, { exchange, face, route, caller, fault }: Done): void {
  const milliseconds = clock.monotonic() - exchange.startedAt;
  const status = exchange.left ? 499 : exchange.status;
  const path = route?.path ?? 'unknown';
  metrics.answered(face, path, status, milliseconds);
  const line = {
    id: exchange.id,
    method: exchange.method,
    path,
    status,
    ms: Math.round(milliseconds * 10) / 10,
    user: caller?.userId,
    key: caller?.keyId,
    ...exchange.notes,
    fault: fault?.code,
  };
  if (fault && fault.status >= 500) log.error({ ...line, ...causeOf(fault) }, 'request');
  else log.info(line, 'request');
  if (fault?.details.said !== undefined) log.debug({ id: exchange.id, said: fault.details.said }, 'The provider refused the request.');
}
