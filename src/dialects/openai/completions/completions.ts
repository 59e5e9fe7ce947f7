import { Type, type Static } from 'typebox';
import { checked } from '#kit/json/check';
import type { GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import type { GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import { invalid } from '../../shared/read-fields.ts';
import { finishWord, type Identity } from '../chat/encode-answer.ts';
import { encodeUsage } from '../chat/usage.ts';

/** The older completions, of one prompt, in the words of chat: the prompt is what the user says. https://platform.openai.com/docs/api-reference/completions */

const orNull = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Fields that chat has too are checked there. */
export const CompletionRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 200 }),
    prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 1 })], { description: 'One text.' }),
    echo: orNull(Type.Boolean()),
    suffix: orNull(Type.String()),
    logprobs: orNull(Type.Integer({ minimum: 0, maximum: 5 })),
    best_of: orNull(Type.Integer({ minimum: 1, maximum: 20 })),
    n: orNull(Type.Integer({ minimum: 1, maximum: 128 })),
    stream: orNull(Type.Boolean()),
  },
  { additionalProperties: true },
);

export const Completion = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String({ description: 'The model that answered.' }),
  choices: Type.Array(Type.Object({ index: Type.Integer(), text: Type.String(), logprobs: Type.Null(), finish_reason: Type.String() })),
  usage: Type.Optional(Type.Object({ prompt_tokens: Type.Integer(), completion_tokens: Type.Integer(), total_tokens: Type.Integer() })),
});

const check = checked(
  CompletionRequest,
  ({ field, message, missing }) =>
    new Fault('invalid', message.replace(/^The value/, 'The body'), { ...(field ? { field } : {}), ...(missing ? { reason: 'missing' } : {}) }),
);

/**
 * The body of a chat request that asks the same.
 *
 * @param body parsed JSON
 * @throws Fault `invalid` for what cannot be asked in a chat
 */
export function asChat(body: unknown): JsonObject {
  const { prompt, echo, suffix, logprobs, best_of: best, ...others } = check(body) as Static<typeof CompletionRequest> & JsonObject;
  const text = typeof prompt === 'string' ? prompt : prompt[0]!;
  if (echo) throw invalid('echo', 'must be false: the prompt is not repeated here');
  if (suffix) throw invalid('suffix', 'cannot be honoured: a chat model goes on at the end only');
  if (typeof logprobs === 'number') throw invalid('logprobs', 'cannot be honoured here: ask /chat/completions for them');
  if (typeof best === 'number' && best !== (others.n ?? 1)) throw invalid('best_of', 'must be as n: no answers are made to be thrown away');
  return { ...others, messages: [{ role: 'user', content: text }] };
}

export function encodeCompletion({ started, candidates, usage }: GenerateResult, { id, created }: Identity): JsonObject {
  const choices = candidates.map(({ parts, reason, raw }, index) => ({
    index,
    text: parts.map((part) => (part.type === 'text' || part.type === 'refusal' ? part.text : '')).join(''),
    logprobs: null,
    finish_reason: finishWord(reason, raw),
  }));
  return { id, object: 'text_completion', created, model: started.model, choices, ...(usage ? { usage: encodeUsage(usage) } : {}) };
}

/** Events → chunks. */
export function completionEncoder({ id, created, usageWanted }: Identity & { readonly usageWanted: boolean }): {
  encode(event: GenerateEvent): string;
  end(): string;
} {
  let model = '';
  let last = '';
  const frame = (members: JsonObject) => `data: ${JSON.stringify({ id, object: 'text_completion', created, model, ...members })}\n\n`;
  const choice = (index: number, text: string, reason: string | null) => frame({ choices: [{ index, text, logprobs: null, finish_reason: reason }] });
  return {
    encode(event) {
      switch (event.type) {
        case 'started':
          model = event.model;
          return '';
        case 'text':
        case 'refusal':
          return choice(event.candidate, event.text, null);
        case 'finished':
          return choice(event.candidate, '', finishWord(event.reason, event.raw));
        case 'usage':
          if (usageWanted) last = frame({ choices: [], usage: encodeUsage(event.usage) });
          return '';
        case 'thought':
        case 'tool-call':
        case 'part':
        case 'passed':
          return ''; // this interface has no words for them
        default:
          return event satisfies never;
      }
    },
    end: () => `${last}data: [DONE]\n\n`,
  };
}
