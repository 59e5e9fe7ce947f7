import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import { modelNamed } from '#core/known-models';
import { promptTokens, type CountTokens } from '#core/measure';
import type { ServerTools } from '#core/server-tools';
import { placesOf } from '#core/target';
import type { Waits } from '../routing/failover.ts';
import type { Health } from '../routing/health.ts';
import type { Guards } from '../rules/guarded.ts';
import type { Models } from '../rules/resolved.ts';

export interface CountingDeps {
  readonly models: (caller: Caller) => Models;
  readonly guards: () => Guards;
  readonly waits: () => Waits;
  readonly health: Pick<Health, 'state'>;
  /** Exact for the built-in model. */
  readonly countTokens: CountTokens;
  readonly tools: Pick<ServerTools, 'permits'>;
}

/** The tokens of a conversation's prompt. Costs nothing. */
export type CountPrompt = (call: GenerateCall, context: Context) => Promise<number>;

/** Seconds that a provider may take to count. */
const mostSeconds = 10;

/**
 * Counts as the first provider of the model does if it is healthy and can be asked, else as the built-in model does. A conversation that a guardrail applies to is
 * not sent anywhere to be counted. A count says nothing of the health of a target.
 * @throws Fault `forbidden` or `invalid` for an MCP server that the caller may not use
 */
export function counting({ models, guards, waits, health, countTokens, tools }: CountingDeps): CountPrompt {
  return async (call, context) => {
    const { caller, signal } = context;
    if (call.otherServers) tools.permits(caller, call.otherServers);
    const route = modelNamed(models(caller), call.model);
    const [target] = placesOf(route?.targets ?? []);
    if (route && target?.countTokens && health.state(target).state === 'ok' && !guards().of({ ...call, route }, caller)) {
      const head = Math.min(mostSeconds, waits().firstByteSeconds);
      const tokens = await target.countTokens(call, { ...context, strict: false, patience: { head, firstByte: head, idle: head } });
      if (tokens !== undefined) return tokens;
    }
    return promptTokens(call, countTokens, { caller, signal });
  };
}
