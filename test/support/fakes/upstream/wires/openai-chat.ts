import { pieces, type Asked, type Answer, type AnswerUsage, type ToolCall, type ToolShape, type Wire } from '../wire.ts';
import { secretWord } from '../secret-word.ts';

/** OpenAI's chat completions: POST …/chat/completions, also as Azure and the compatible ones spell the path. */
export const openaiChat: Wire = {
  name: 'openai-chat',
  speaks: (method, path) => method === 'POST' && path.split('?')[0]!.endsWith('/chat/completions'),

  asked(body): Asked {
    const { model, messages, stream, stream_options, n, max_tokens, max_completion_tokens } = (body ?? {}) as Body;
    const turns = Array.isArray(messages) ? messages : [];
    const maxTokens = max_completion_tokens ?? max_tokens;
    return {
      model: typeof model === 'string' ? model : '',
      text: textOf(turns.findLast((one) => one?.role === 'user')?.content),
      stream: stream === true,
      usage: stream_options?.include_usage === true,
      candidates: typeof n === 'number' ? n : 1,
      ...(typeof maxTokens === 'number' ? { maxTokens } : {}),
      promptTokens: turns.reduce((sum, one) => sum + pieces(textOf(one?.content)).length, 0),
    };
  },

  whole(asked, said) {
    const { thought, thoughtField = 'reasoning_content', tools, toolShape, usage } = said;
    const message = {
      role: 'assistant',
      content: said.text.length > 0 || tools.length === 0 ? said.text.join('') : null,
      refusal: null,
      ...(thought.length > 0 ? { [thoughtField]: thought.join('') } : {}),
      ...(tools.length > 0 ? { tool_calls: tools.map((one) => wholeCall(one, toolShape)) } : {}),
    };
    const choice = (index: number) => ({ index, message, logprobs: null, ...finish(said) });
    return { ...envelope(said, 'chat.completion'), choices: numbers(asked.candidates).map(choice), ...usageMember(usage), service_tier: 'default' };
  },

  frames(asked, said) {
    const chunk = (choices: object[], more: object = {}) => frame({ ...envelope(said, 'chat.completion.chunk'), choices, ...more });
    const { usage, thoughtField = 'reasoning_content' } = said;
    const nothingYet = asked.usage && usage.how !== 'missing' ? { usage: null } : {};
    const each = (delta: object, end: object = { finish_reason: null }) =>
      numbers(asked.candidates).map((index) => chunk([{ index, delta, logprobs: null, ...end }], nothingYet));
    const inFinish = usage.how === 'with-finish' || usage.how === 'null';
    const ends = numbers(asked.candidates).map((index) =>
      chunk([{ index, delta: {}, logprobs: null, ...finish(said) }], inFinish ? usageMember(usage) : nothingYet),
    );
    const own = usage.how === 'once' || usage.how === 'twice' ? [chunk([], usageMember(usage))] : [];
    return [
      ...each({ role: 'assistant', content: '', refusal: null }),
      ...said.thought.flatMap((text) => each({ content: null, [thoughtField]: text })),
      ...said.text.flatMap((text) => each({ content: text })),
      ...callPieces(said.tools, said.toolShape).flatMap((piece) => each({ tool_calls: [piece] })),
      ...(said.finish === 'missing' ? [] : ends),
      ...own,
      ...(usage.how === 'twice' ? own : []),
    ];
  },

  last: 'data: [DONE]',

  fault(status, { model, ...words }) {
    const known = faults[status] ?? { type: 'server_error', code: null, message: 'The server had an error while processing your request.' };
    const named = model === undefined ? {} : { code: 'model_not_found', message: `The model \`${model}\` does not exist or you do not have access to it.` };
    const { type, code, message } = { ...known, ...named, ...words };
    return { error: { message: `${message} (${secretWord})`, type, param: null, code } };
  },

  faultFrame: (status, words) => frame(openaiChat.fault(status, words)),
};

interface Body {
  readonly model?: unknown;
  readonly messages?: unknown;
  readonly stream?: unknown;
  readonly stream_options?: { readonly include_usage?: unknown } | null;
  readonly n?: unknown;
  readonly max_tokens?: unknown;
  readonly max_completion_tokens?: unknown;
}

/** As the real one words them. */
const faults: Readonly<Record<number, { type: string; code: string | null; message: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_value', message: 'Invalid value for a parameter.' },
  401: { type: 'invalid_request_error', code: 'invalid_api_key', message: 'Incorrect API key provided.' },
  402: { type: 'insufficient_quota', code: 'insufficient_balance', message: 'Insufficient Balance' },
  403: { type: 'invalid_request_error', code: 'unsupported_country_region_territory', message: 'Country, region, or territory not supported.' },
  404: { type: 'invalid_request_error', code: null, message: 'Invalid URL.' },
  422: { type: 'invalid_request_error', code: null, message: 'Unprocessable.' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Rate limit reached.' },
  503: { type: 'service_unavailable_error', code: null, message: 'The engine is currently overloaded.' },
  529: { type: 'overloaded_error', code: null, message: 'Overloaded' },
};

const frame = (value: object) => `data: ${JSON.stringify(value)}`;
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);
const envelope = ({ id, created, model }: Answer, object: string) => ({ id: `chatcmpl-${id}`, object, created, model, system_fingerprint: 'fp_fake' });
const reasons = { stop: 'stop', length: 'length', tool: 'tool_calls' } as const;

function finish({ finish: told }: Answer): object {
  if (told === 'missing') return {};
  return { finish_reason: 'raw' in told ? told.raw : reasons[told.reason] };
}

function usageMember(usage: AnswerUsage): object {
  if (usage.how === 'missing') return {};
  if (usage.how === 'null') return { usage: null };
  const { input, output, total } = usage.numbers;
  return { usage: { prompt_tokens: input, completion_tokens: output, total_tokens: total } };
}

/** A message's content is a string or parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : '')).join('');
}

function wholeCall({ id, name, json, custom }: ToolCall, shape: ToolShape) {
  if (custom) return { id, type: 'custom', custom: { name, input: json } };
  return { id, type: 'function', function: { name, arguments: shape === 'object' ? JSON.parse(json) : json } };
}

function callPieces(tools: readonly ToolCall[], shape: ToolShape): object[] {
  const calls = tools.map((tool, index) => onePieces(tool, index, shape));
  if (shape !== 'interleaved') return calls.flat();
  const longest = Math.max(0, ...calls.map((call) => call.length));
  return numbers(longest).flatMap((at) => calls.flatMap((call) => call[at] ?? []));
}

function onePieces(tool: ToolCall, index: number, shape: ToolShape): object[] {
  const { id, name, json, custom } = tool;
  if (shape === 'whole' || shape === 'object') return [{ index, ...wholeCall(tool, shape) }];
  const at = shape === 'no-index' ? {} : { index };
  const again = shape === 'name-again' ? { id, type: 'function' } : {};
  const texts = json.match(/[^]{1,5}/gu) ?? [];
  if (custom) return [{ ...at, id, type: 'custom', custom: { name, input: '' } }, ...texts.map((input) => ({ ...at, custom: { input } }))];
  return [
    { ...at, id, type: 'function', function: { name, arguments: '' } },
    ...texts.map((text) => ({ ...at, ...again, function: { ...(shape === 'name-again' ? { name: '' } : {}), arguments: text } })),
  ];
}
