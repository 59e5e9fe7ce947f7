import type { ProviderSide } from '#dialects/dialect';
import { isCount } from '#dialects/shared/read-fields';
import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import type { Target } from '#core/target';
import { attempt, type Address, type Endpoint, type ProviderRequest } from './attempt.ts';
import { whole } from './post.ts';
import { jsonOf } from './read-answer.ts';
import { written } from './write-request.ts';

interface Counting<Quirks extends object> extends Pick<Endpoint<GenerateCall, ProviderRequest, Quirks>, 'model' | 'upstreams' | 'credentials' | 'quirks'> {
  readonly dialect: Pick<ProviderSide<{ readonly quirks: Quirks; readonly options: object }>, 'decodeFault' | 'learn' | 'betaHeader' | 'refusedBetas'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly address: () => Address;
  readonly encode: (call: GenerateCall, quirks: Quirks | undefined) => JsonObject;
  /** The member of the answer with the number. */
  readonly member: string;
}

/** A provider that cannot count is not asked again for an hour, one that is out of reach or refuses all keys for a minute. */
const absentMilliseconds = 3_600_000;
const pauseMilliseconds = 60_000;

/**
 * Counts the tokens of prompts at the provider. The function returns undefined where the provider does not say. Counts never affect answers: a key that is refused
 * here is not set aside, and what a refusal teaches holds for this count alone.
 */
export function tokenCounter<Quirks extends object>({
  dialect,
  clock,
  address,
  encode,
  member,
  credentials,
  quirks,
  ...deps
}: Counting<Quirks>): NonNullable<Target['countTokens']> {
  const { decodeFault, learn, betaHeader, refusedBetas } = dialect;
  const endpoint: Endpoint<GenerateCall, ProviderRequest, Quirks> = {
    ...deps,
    credentials: { inTurn: (model) => credentials.inTurn(model).map((one) => ({ headers: (signal) => one.headers(signal), refused: () => false })) },
    quirks: { ...quirks, keep: () => {} },
    address,
    betaHeader,
    refusedBetas,
    decodeFault,
    learn,
    encode: (call, quirks) => ({ body: written(call, encode(call, quirks)), ignored: [] }),
  };
  let silentUntil = -Infinity;
  return async (call, context) => {
    if (clock.monotonic() < silentUntil) return undefined;
    try {
      const { response } = await attempt(endpoint, call, context);
      try {
        const answer = await jsonOf(await whole(response, context));
        const tokens = isObject(answer) ? answer[member] : undefined;
        return isCount(tokens) ? tokens : undefined;
      } finally {
        response.leave();
      }
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof Fault)) throw error;
      silentUntil = clock.monotonic() + silenceAfter(error);
      return undefined;
    }
  };
}

/** Milliseconds for which counts are estimated after a fault; 0 if it was the conversation that was refused. */
function silenceAfter({ code, details: { absent, elsewhere, key } }: Fault): number {
  if (absent || (code === 'upstream-failed' && !elsewhere && !key)) return absentMilliseconds;
  return key || elsewhere ? pauseMilliseconds : 0;
}
