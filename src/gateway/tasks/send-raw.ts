import type { Call } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { SendRaw } from '#core/raw-request';

/** Requests that are forwarded unparsed, under the same rules as every call. */
export function rawSender(generate: Generate<Call>): SendRaw {
  return async (call, context) => {
    const { model, operation, stream, texts, tokens, counts, most } = call;
    const events = generate(
      {
        model,
        kind: 'other',
        stream,
        sampling: {},
        texts,
        tokens,
        counts,
        most,
        able: (target) => target.sendRaw !== undefined,
        unable: `No provider here answers /${operation} for this model. Name one that has a target at an OpenAI-compatible provider.`,
        ask: (target, at) => target.sendRaw!(call, at),
      },
      context,
    );
    for await (const _ of events) continue;
  };
}
