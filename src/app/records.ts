import type { Settings } from '#config/index';
import type { Caller, Context } from '#core/context';
import { Fault } from '#core/fault';
import { answerHeaders } from '#faces/answer-headers';
import type { StoredResponseBody } from '#faces/chatcompat/responses/stored-body';
import type { Headers } from '#http/headers';
import type { Clock } from '#kit/async/clock';
import { randomKey } from '#kit/crypto/ids';
import { openIdempotency } from '#resources/idempotency/once';
import { openKeptThoughts } from '#resources/kept-thoughts/index';
import { nativeContext } from '#resources/native-context';
import { openKeeping } from '#resources/stored-responses/index';
import { secretRow } from '#store/secrets';
import { problemsTo, type Log } from '#telemetry/log';
import type { Database } from './database.ts';

export interface RecordsDeps {
  readonly database: Database;
  /** The name of this start of the server: idempotency keys that it had claimed are free once it has ended. */
  readonly boot: string;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** Notes what is left of the caller's limits. @returns false where that is not known here. @throws Fault where the limits are not known */
  readonly left: (context: Context) => boolean;
}

/** Opens the stores of answers: responses that requests continue, and answers to requests with an Idempotency-Key. */
export async function openRecords({ database: { store, seal }, boot, settings, clock, log, left }: RecordsDeps) {
  const problem = problemsTo(log);
  const keeping = openKeeping<StoredResponseBody>({
    store,
    seal,
    clock,
    retentionDays: () => settings().responses.retentionDays,
    mostRuns: () => settings().responses.maxRuns,
    mostBytes: () => settings().responses.maxBytes,
    log: problem,
  });
  const idempotency = await openIdempotency({
    store,
    seal,
    boot,
    pepper: await secretRow(store, seal, 'idempotency pepper', randomKey),
    clock,
    longestSeconds: () => Math.max(settings().limits.requestSeconds, settings().limits.streamSeconds),
    limitHeaders: (caller) => limitHeaders(caller, left),
    log: problem,
  });
  const thoughts = openKeptThoughts({ store, seal, pepper: await secretRow(store, seal, 'thoughts pepper', randomKey), clock, log: problem });
  return { keeping, idempotency, thoughts };
}

/** What is left of the caller's limits now; nothing where they are not known. */
function limitHeaders(caller: Caller, left: RecordsDeps['left']): Headers {
  const context = nativeContext({ caller, requestId: '', signal: never });
  try {
    if (!left(context)) return [];
  } catch (error) {
    if (error instanceof Fault) return [];
    throw error;
  }
  return answerHeaders(context.progress, undefined);
}

const never = new AbortController().signal;
