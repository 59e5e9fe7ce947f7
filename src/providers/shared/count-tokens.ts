import type { ProviderSide } from '#dialects/dialect';
import { isCount } from '#dialects/shared/read-fields';
import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import type { Target } from '#core/target';
import { attempt, type Address, type Endpoint, type ProviderRequest } from './attempt.ts';
import { wholeJson } from './read-answer.ts';
import { written } from './write-request.ts';

interface Counting<Quirks extends object> extends Pick<Endpoint<GenerateCall, ProviderRequest, Quirks>, 'model' | 'upstreams' | 'credentials' | 'quirks'> {
  readonly dialect: Pick<ProviderSide<{ readonly quirks: Quirks; readonly options: object }>, 'decodeFault' | 'learn' | 'betaHeader'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Where tokens are counted. */
  readonly address: () => Address;
  readonly encode: (call: GenerateCall, quirks: Quirks | undefined) => JsonObject;
  /** The member of the answer with the number. */
  readonly member: string;
}

/** A provider that cannot count is not asked again for an hour. */
const forgottenMilliseconds = 3_600_000;

/** Counts the tokens of prompts at the provider. The function returns undefined where the provider does not say. */
export function tokenCounter<Quirks extends object>({
  dialect,
  clock,
  address,
  encode,
  member,
  ...deps
}: Counting<Quirks>): NonNullable<Target['countTokens']> {
  const { decodeFault, learn, betaHeader } = dialect;
  const endpoint: Endpoint<GenerateCall, ProviderRequest, Quirks> = {
    ...deps,
    address,
    betaHeader,
    decodeFault,
    learn,
    encode: (call, quirks) => ({ body: written(call, encode(call, quirks)), ignored: [] }),
  };
  let absentUntil = 0;
  return async (call, context) => {
    if (clock.monotonic() < absentUntil) return undefined;
    try {
      const { response } = await attempt(endpoint, call, context);
      try {
        const answer = await wholeJson(response, context);
        const tokens = isObject(answer) ? answer[member] : undefined;
        return isCount(tokens) ? tokens : undefined;
      } finally {
        response.leave();
      }
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof Fault)) throw error;
      const { code, details } = error;
      if (details.absent || (code === 'upstream-failed' && !details.elsewhere && !details.key)) absentUntil = clock.monotonic() + forgottenMilliseconds;
      return undefined;
    }
  };
}
