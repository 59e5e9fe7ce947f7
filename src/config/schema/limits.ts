import { Type } from 'typebox';
import { count, group, seconds, secondsOrNone } from './shapes.ts';

/** What a body may have at most: it becomes one text of the runtime, which ends at 512 MiB. */
const largestBody = 512 * 1024 * 1024;

export const limits = group('How large and how long things may be.', {
  bodyBytes: Type.Integer({ minimum: 1, maximum: largestBody, description: 'Largest body of a request (bytes).', default: 33_554_432 }),
  fileBytes: count('Largest uploaded file', 'bytes', 1, { default: 209_715_200 }),
  maxConnections: count('Clients connected at once; fewer where the system lets the process open few files', 'connections', 1, { default: 10_000 }),
  headerSeconds: seconds('A client may take this long for its headers', 10),
  bodyIdleSeconds: seconds('A client may stop this long in its body', 60),
  connectSeconds: seconds('Connecting to a provider', 3),
  holdHeadersSeconds: seconds('The status line of a stream waits this long for the first event', 10),
  hangSeconds: group('A target is left for the next without a response head for so long, never more than firstByteSeconds.', {
    stream: seconds('A streamed answer', 60),
    whole: seconds('A whole answer', 90),
  }),
  firstByteSeconds: seconds('Until the first event that speaks', 300),
  streamIdleSeconds: seconds('Between two events, from the first one that speaks', 120),
  requestSeconds: seconds('A request that is not streamed, at most', 600),
  streamSeconds: seconds('A stream, at most', 3600),
  agentSeconds: seconds('A run of an agent, at most', 1800),
  reserveOutput: count(
    'Reserved for a streamed answer whose length nobody named, a step at a time; a whole one may have four steps where its model has no known limit',
    'tokens',
    1,
    { default: 2048 },
  ),
  minFreeBytes: count('With less room on the disk no call that spends is admitted; 0: no matter', 'bytes', 0, { default: 268_435_456 }),
  staleCredentialSeconds: secondsOrNone('A known credential stays good so long while the database is away; 0: not at all', 300),
});

export const routing = group('How a target that fails is left and tried again.', {
  cooldownSeconds: secondsOrNone('First pause of a target that was busy, doubling; 0: no cooldown, no ejection, no hang budget', 1),
  cooldownMaxSeconds: secondsOrNone('Longest such pause', 60),
  retryBudget: Type.Number({ minimum: 0, maximum: 1, description: 'Second tries at most, as a share of the requests; 1: no bound.', default: 0.2 }),
});
