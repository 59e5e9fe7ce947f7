import { pieces, type Asked, type Answer, type AnswerUsage, type Wire } from '../wire.ts';
import { openaiChat } from './openai-chat.ts';

/** OpenAI's responses: POST …/responses. */
export const openaiResponses: Wire = {
  name: 'openai-responses',
  speaks: (method, path) => method === 'POST' && path.split('?')[0]!.endsWith('/responses'),

  asked(body): Asked {
    const { model, input, stream, max_output_tokens: most } = (body ?? {}) as Body;
    const items = Array.isArray(input) ? (input as readonly Item[]) : [];
    return {
      model: typeof model === 'string' ? model : '',
      text: typeof input === 'string' ? input : textOf(items.findLast((one) => one?.role === 'user')?.content),
      stream: stream === true,
      usage: true,
      candidates: 1,
      ...(typeof most === 'number' ? { maxTokens: most } : {}),
      promptTokens: items.reduce((sum, one) => sum + pieces(textOf(one?.content)).length, 0),
    };
  },

  whole: (_, said) => responseOf(said, itemsOf(said), endOf(said)),

  frames(_, said) {
    let number = 0;
    const frame = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}`;
    const frames = [
      frame('response.created', { response: responseOf(said, [], 'in_progress') }),
      frame('response.in_progress', { response: responseOf(said, [], 'in_progress') }),
    ];
    itemsOf(said).forEach((item, output_index) => {
      const place = { item_id: item.id, output_index };
      frames.push(
        frame('response.output_item.added', {
          output_index,
          item: { ...item, ...nothingOf[item.type] },
        }),
      );
      const deltas: readonly (readonly [string, object])[] =
        item.type === 'message'
          ? said.text.map((delta) => ['response.output_text.delta', { content_index: 0, delta, logprobs: [] }] as const)
          : item.type === 'reasoning'
            ? said.thought.map((delta) => ['response.reasoning_summary_text.delta', { summary_index: 0, delta }] as const)
            : item.type === 'custom_tool_call'
              ? (item.input.match(/[^]{1,5}/gu) ?? []).map((delta) => ['response.custom_tool_call_input.delta', { delta }] as const)
              : (item.arguments.match(/[^]{1,5}/gu) ?? []).map((delta) => ['response.function_call_arguments.delta', { delta }] as const);
      for (const [type, members] of deltas) frames.push(frame(type, { ...place, ...members }));
      frames.push(frame('response.output_item.done', { output_index, item }));
    });
    const end = endOf(said);
    return said.finish === 'missing' ? frames : [...frames, frame(`response.${end}`, { response: responseOf(said, itemsOf(said), end) })];
  },

  fault: (status, words) => openaiChat.fault(status, words),
  faultFrame: (status, words) => `event: error\ndata: ${JSON.stringify({ type: 'error', sequence_number: 2, ...openaiChat.fault(status, words) })}`,
};

interface Body {
  readonly model?: unknown;
  readonly input?: unknown;
  readonly stream?: unknown;
  readonly max_output_tokens?: unknown;
}

interface Item {
  readonly role?: unknown;
  readonly content?: unknown;
}

type SaidItem =
  | { readonly type: 'reasoning'; readonly id: string; readonly encrypted_content: string; readonly summary: readonly object[] }
  | { readonly type: 'message'; readonly id: string; readonly role: 'assistant'; readonly status: string; readonly content: readonly object[] }
  | {
      readonly type: 'custom_tool_call';
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly input: string;
      readonly status: string;
    }
  | {
      readonly type: 'function_call';
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly arguments: string;
      readonly status: string;
    };

/** What an item lacks before its pieces come. */
const nothingOf: Readonly<Record<SaidItem['type'], object>> = {
  message: { content: [] },
  reasoning: { summary: [] },
  function_call: { arguments: '' },
  custom_tool_call: { input: '' },
};

const encrypted_content = 'gAAAAAencrypted';

function itemsOf({ id, thought, signature, text, tools }: Answer): readonly SaidItem[] {
  const summary = thought.length > 0 ? [{ type: 'summary_text', text: thought.join('') }] : [];
  return [
    ...(thought.length > 0 || signature !== undefined
      ? [{ type: 'reasoning' as const, id: `rs_${id}`, encrypted_content: signature === undefined ? encrypted_content : `${signature}.rs_${id}`, summary }]
      : []),
    ...(text.length > 0
      ? [
          {
            type: 'message' as const,
            id: `msg_${id}`,
            role: 'assistant' as const,
            status: 'completed',
            content: [{ type: 'output_text', text: text.join(''), annotations: [], logprobs: [] }],
          },
        ]
      : []),
    ...tools.map(({ id: call_id, name, json, custom, namespace }) =>
      custom
        ? {
            type: 'custom_tool_call' as const,
            id: `ctc_${call_id}`,
            call_id,
            name,
            input: json,
            status: 'completed',
            ...(namespace === undefined ? {} : { namespace }),
          }
        : {
            type: 'function_call' as const,
            id: `fc_${call_id}`,
            call_id,
            name,
            ...(namespace === undefined ? {} : { namespace }),
            arguments: json,
            status: 'completed',
          },
    ),
  ];
}

const endOf = ({ finish }: Answer): string => (finish !== 'missing' && 'reason' in finish && finish.reason === 'length' ? 'incomplete' : 'completed');

function responseOf({ id, model, created, usage }: Answer, output: readonly object[], status: string): object {
  const over = status === 'completed' || status === 'incomplete';
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: created,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    model,
    output,
    usage: over ? usageMember(usage) : null,
  };
}

function usageMember(usage: AnswerUsage): object | null {
  if (usage.how === 'missing' || usage.how === 'null') return null;
  const { input, output, total } = usage.numbers;
  return { input_tokens: input, output_tokens: output, total_tokens: total };
}

/** A message's content is a string or parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : '')).join('');
}
