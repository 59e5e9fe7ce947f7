import type { Exchange } from './http/exchange.ts';
import type { Metrics } from './http/metrics.ts';
import type { Route } from './http/route.ts';
import type { Clock } from './kit/clock.ts';
import { causeOf, type Log } from './log.ts';
import type { Fault } from './model/fault.ts';
import type { Caller } from './model/generate.ts';

/** One answered request in the log and in the figures. Only what we chose ourselves is written: no address as it came, no header, no body. */
export function requestLine(
  { log, metrics, clock }: { log: Log; metrics: Metrics; clock: Clock },
  exchange: Exchange,
  route: Route | undefined,
  caller: Caller | undefined,
  fault: Fault | undefined,
): void {
  const milliseconds = clock.monotonic() - exchange.startedAt;
  const status = exchange.left ? 499 : exchange.status;
  const path = route?.path ?? 'unknown';
  metrics.answered(path.split('/')[2] ?? 'watch', path, status, milliseconds);
  const line = {
    id: exchange.id,
    method: exchange.method,
    path,
    status,
    ms: Math.round(milliseconds * 10) / 10,
    ...(caller ? { user: caller.userId, key: caller.keyId } : {}),
    ...exchange.notes,
    ...(fault ? { fault: fault.code } : {}),
  };
  if (fault && fault.status >= 500) log.error({ ...line, ...causeOf(fault) }, 'request');
  else log.info(line, 'request');
}
