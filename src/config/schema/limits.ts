import { Type } from 'typebox';
import { count, group, seconds, secondsOrNone } from './shapes.ts';

/** Bytes. Upper bound of `bodyBytes`: a body becomes one string, and the longest string of the runtime is 512 MiB. */
const largestBody = 512 * 1024 * 1024;

export const limits = group('Limits on sizes and durations.', {
  bodyBytes: Type.Integer({ minimum: 1, maximum: largestBody, description: 'Largest request body (bytes).', default: 33_554_432 }),
  fileBytes: count('Largest uploaded file', 'bytes', 1, { default: 209_715_200 }),
  maxConnections: count('Maximum number of concurrent client connections; lowered if the system limit on open files is too small', 'connections', 1, {
    default: 10_000,
  }),
  headerSeconds: seconds('Longest time a client may take to send its headers', 10),
  bodyIdleSeconds: seconds('Longest pause of a client while it sends its body', 60),
  connectSeconds: seconds('Longest time to connect to a provider', 3),
  holdHeadersSeconds: seconds('Longest time the status line of a stream is held back for the first event', 10),
  hangSeconds: group('Longest wait for the response headers of a target before the next target is tried; capped by firstByteSeconds.', {
    stream: seconds('For a streamed answer', 60),
    whole: seconds('For an answer that is not streamed', 90),
  }),
  firstByteSeconds: seconds('Longest wait for the first event with content', 300),
  streamIdleSeconds: seconds('Longest pause between two events, counted from the first event with content', 120),
  requestSeconds: seconds('Longest duration of a request that is not streamed', 600),
  streamSeconds: seconds('Longest duration of a stream', 3600),
  agentSeconds: seconds('Longest duration of an agent run', 1800),
  reserveOutput: count(
    'Tokens reserved per step for a streamed answer without a requested maximum; an answer that is not streamed reserves up to four steps if the output limit of its model is unknown',
    'tokens',
    1,
    { default: 2048 },
  ),
  minFreeBytes: count('Minimum free disk space; below it, calls that consume quota are refused; 0: no check', 'bytes', 0, { default: 268_435_456 }),
  staleCredentialSeconds: secondsOrNone('How long a known credential is accepted while the database is unavailable; 0: not at all', 300),
});

export const routing = group('Failover: how failing targets are paused and retried.', {
  cooldownSeconds: secondsOrNone('First cooldown of an overloaded target, doubled each time; 0 turns off cooldowns, ejection and the hang budget', 1),
  cooldownMaxSeconds: secondsOrNone('Longest cooldown', 60),
  retryBudget: Type.Number({ minimum: 0, maximum: 1, description: 'Maximum number of retries, as a fraction of the requests; 1: unlimited.', default: 0.2 }),
});
