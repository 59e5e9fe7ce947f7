import type { Metrics } from '#telemetry/metrics';
import type { Fault } from '#core/fault';
import type { Done } from '#http/requests';
import type { Clock } from '#kit/async/clock';
import { causeOf, type Log } from '#telemetry/log';
import { saidNo } from '#gateway/routing/named-provider';

/** Writes an answered request to the log and the metrics. Nothing that a client chose is written: the route instead of the path, no header, no body. At level debug it adds what the providers said that refused it, masked. */
export function requestLine({ log, metrics, clock }: { log: Log; metrics: Metrics; clock: Clock }, { exchange, face, route, caller, fault }: Done): void {
  const milliseconds = clock.monotonic() - exchange.startedAt;
  const status = exchange.left ? 499 : exchange.status;
  const path = route?.path ?? 'unknown';
  metrics.answered(face, path, status, milliseconds);
  if (fault?.details.limit !== undefined) metrics.refused(fault.details.limit);
  const { model, provider, attempts, flags, cache, replayed } = exchange.notes;
  const line = {
    id: exchange.id,
    method: exchange.method,
    path,
    status,
    ms: Math.round(milliseconds * 10) / 10,
    user: caller?.userId,
    key: caller?.keyId,
    model,
    provider,
    attempts,
    flags,
    cache,
    replayed,
    fault: fault?.code,
  };
  if (fault && fault.status >= 500) log.error({ ...line, ...causeOf(fault) }, 'request');
  else log.info(fault ? { ...line, cause: refusedBy(fault) } : line, 'request');
  const said = exchange.refusals ?? (fault?.details.said === undefined ? [] : [fault.details.said]);
  for (const one of said) log.debug({ id: exchange.id, said: one }, 'The provider refused the request.');
}

/** The status and the code of the provider that refused the request; undefined where it was refused here. */
function refusedBy(fault: Fault): object | undefined {
  const no = saidNo(fault);
  return no.status === undefined ? undefined : causeOf(no);
}
