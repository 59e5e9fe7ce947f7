import { pieces, type Asked, type Answer, type AnswerUsage, type Wire } from '../wire.ts';
import { secretWord } from '../secret-word.ts';

/** Anthropic's messages: POST …/v1/messages. */
export const anthropicMessages: Wire = {
  name: 'anthropic-messages',
  speaks: (method, path) => method === 'POST' && path.split('?')[0]!.endsWith('/messages'),

  asked(body): Asked {
    const { model, messages, stream, max_tokens } = (body ?? {}) as Body;
    const turns = Array.isArray(messages) ? messages : [];
    return {
      model: typeof model === 'string' ? model : '',
      text: textOf(turns.findLast((one) => one?.role === 'user')?.content),
      stream: stream === true,
      usage: true,
      candidates: 1,
      ...(typeof max_tokens === 'number' ? { maxTokens: max_tokens } : {}),
      promptTokens: turns.reduce((sum, one) => sum + pieces(textOf(one?.content)).length, 0),
    };
  },

  whole(_, said) {
    const { thought, text, tools } = said;
    const content = [
      ...(hasThought(said) ? [{ type: 'thinking', thinking: thought.join(''), signature: said.signature ?? signature }] : []),
      ...(text.length > 0 ? [{ type: 'text', text: text.join('') }] : []),
      ...tools.map(({ id, name, json }) => ({ type: 'tool_use', id, name, input: JSON.parse(json) as unknown })),
    ];
    return { ...envelope(said), content, ...stop(said), usage: usageMember(said.usage, 'whole') };
  },

  frames(_, said) {
    const { thought, text, tools, usage } = said;
    let index = -1;
    const block = (content_block: object, ...deltas: readonly object[]) => {
      index++;
      return [
        frame({ type: 'content_block_start', index, content_block }),
        ...deltas.map((delta) => frame({ type: 'content_block_delta', index, delta })),
        frame({ type: 'content_block_stop', index }),
      ];
    };
    const message = { ...envelope(said), content: [], stop_reason: null, stop_sequence: null, usage: usageMember(usage, 'start') };
    const thinking = thought.map((one) => ({ type: 'thinking_delta', thinking: one }));
    return [
      frame({ type: 'message_start', message }),
      frame({ type: 'ping' }),
      ...(hasThought(said)
        ? block({ type: 'thinking', thinking: '', signature: '' }, ...thinking, { type: 'signature_delta', signature: said.signature ?? signature })
        : []),
      ...(text.length > 0 ? block({ type: 'text', text: '' }, ...text.map((one) => ({ type: 'text_delta', text: one }))) : []),
      ...tools.flatMap(({ id, name, json }) =>
        block(
          { type: 'tool_use', id, name, input: {} },
          ...['', ...(json.match(/[^]{1,5}/gu) ?? [])].map((one) => ({ type: 'input_json_delta', partial_json: one })),
        ),
      ),
      ...(said.finish === 'missing' ? [] : [frame({ type: 'message_delta', delta: stop(said), usage: usageMember(usage, 'end') })]),
    ];
  },

  last: 'event: message_stop\ndata: {"type":"message_stop"}',

  fault(status, { model, ...words }) {
    const named = model === undefined ? {} : { type: 'not_found_error', message: `model: ${model}` };
    const { type, message } = { type: types[status] ?? 'api_error', message: 'The provider says no.', ...named, ...words };
    return { type: 'error', error: { type, message: `${message} (${secretWord})` }, request_id: 'req_of_the_upstream' };
  },

  faultFrame: (status, words) => frame({ type: 'error', ...anthropicMessages.fault(status, words) }),
};

interface Body {
  readonly model?: unknown;
  readonly messages?: unknown;
  readonly stream?: unknown;
  readonly max_tokens?: unknown;
}

const signature = 'c2lnbmF0dXJl';

/** One that is not shown is still signed. */
const hasThought = ({ thought, signature }: Answer) => thought.length > 0 || signature !== undefined;

/** As the real one words them. */
const types: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

const frame = (value: { readonly type: string; readonly [name: string]: unknown }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}`;
const envelope = ({ id, model }: Answer) => ({ id: `msg_${id}`, type: 'message', role: 'assistant', model });
const reasons = { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use' } as const;

function stop({ finish: told }: Answer): object {
  if (told === 'missing') return { stop_reason: null, stop_sequence: null };
  return { stop_reason: 'raw' in told ? told.raw : reasons[told.reason], stop_sequence: null };
}

/** Streams count twice: what was read in the first event, what was said in the last. */
function usageMember(usage: AnswerUsage, where: 'whole' | 'start' | 'end'): object | null {
  if (usage.how === 'missing' || usage.how === 'null') return null;
  const { input, output } = usage.numbers;
  return { ...(where === 'end' ? {} : { input_tokens: input, cache_read_input_tokens: 0 }), output_tokens: where === 'start' ? 1 : output };
}

/** A message's content is a string or blocks. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((block: { text?: unknown } | null) => (typeof block?.text === 'string' ? block.text : '')).join('');
}
