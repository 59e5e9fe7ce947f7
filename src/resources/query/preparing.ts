import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { Events } from '#core/event';
import { inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import { inOwnCodes } from '../native-context.ts';

/** Makes a call ready, which may take calls of its own, and has it answered. @throws Fault; an unknown model is `invalid` on this interface */
export function preparing(prepared: (call: GenerateCall, context: Context) => Promise<GenerateCall>, inner: Generate): Generate {
  return inBothVerbs(
    async function* (call, context): AsyncGenerator<Events> {
      context.permits.hold();
      try {
        yield* inner(await prepared(call, context), { ...context, told: inOwnCodes });
      } catch (error) {
        throw inOwnCodes(error);
      } finally {
        context.permits.release();
      }
    },
    async (call, context) => {
      context.permits.hold();
      try {
        return await wholeAnswer(inner, await prepared(call, context), { ...context, told: inOwnCodes });
      } catch (error) {
        throw inOwnCodes(error);
      } finally {
        context.permits.release();
      }
    },
  );
}
