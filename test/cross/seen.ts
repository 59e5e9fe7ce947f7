import type { FinishReason, Usage } from '#core/event';
import type { GenerateResult } from '#core/fold';
import { linesOf } from './wires.ts';

/** What somebody learns from an answer, whatever its wire. Texts are joined, and what a wire does not say is left empty. */
export interface Seen {
  readonly candidates: readonly SeenCandidate[];
  readonly usage: { readonly input: number; readonly output: number; readonly cached: number; readonly thought: number };
}

export interface SeenCandidate {
  text: string;
  thought: string;
  refusal: string;
  readonly calls: SeenCall[];
  /** Base64 of images and sounds, joined: a sound comes in pieces. */
  media: string;
  readonly logprobs: (readonly [token: string, logprob: number])[];
  finish: FinishReason;
}

/** Arguments as the value that they say, or as text where they are no JSON. */
export interface SeenCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** Reads an answer as a client does that knows this wire alone: by its public description, with none of our code. */
export interface Reader {
  whole(body: unknown): Seen;
  streamed(body: string): Seen;
}

// oxlint-disable-next-line typescript/no-explicit-any -- what comes is looked at as a client in JavaScript does
type Any = any;

const nobody = (): SeenCandidate => ({ text: '', thought: '', refusal: '', calls: [], media: '', logprobs: [], finish: 'stop' });
const framesOf = (body: string): Any[] => linesOf(Buffer.from(body)).flatMap((line) => (line === '[DONE]' ? [] : [JSON.parse(line)]));

/** Clients ask for tools where there are calls, whatever word came with them. */
const finishOf = (said: FinishReason, calls: readonly unknown[]): FinishReason => (said === 'stop' && calls.length > 0 ? 'tool' : said);

function argumentsOf(json: string): unknown {
  if (json.trim() === '') return {};
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Wires that want an object get text that is none in one. */
function objectOf(value: Any): unknown {
  const names = Object.keys(value ?? {});
  return names.length === 1 && names[0] === 'arguments' && typeof value.arguments === 'string' ? value.arguments : value;
}

const counts = (input = 0, output = 0, cached = 0, thought = 0): Seen['usage'] => ({ input, output, cached, thought });

// ——— chat completions ———

const chatWords: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool',
  function_call: 'tool',
  content_filter: 'refused',
};

function chatUsage(usage: Any): Seen['usage'] {
  return counts(
    usage?.prompt_tokens,
    usage?.completion_tokens,
    usage?.prompt_tokens_details?.cached_tokens,
    usage?.completion_tokens_details?.reasoning_tokens,
  );
}

const chatCall = ({ id, function: called, custom }: Any): SeenCall => ({
  id,
  name: (called ?? custom).name,
  arguments: called ? argumentsOf(called.arguments) : custom.input,
});

const imageOf = ({ image_url: { url } }: Any): string => url.slice(url.indexOf(',') + 1);
const tokenOf = ({ token, logprob }: Any) => [token, logprob] as const;

export const chatReader: Reader = {
  whole({ choices, usage }: Any) {
    const candidates = choices.map(({ message, logprobs, finish_reason: word }: Any): SeenCandidate => {
      const older = message.function_call ? [{ id: '', function: message.function_call }] : [];
      const calls = [...older, ...(message.tool_calls ?? [])].map(chatCall);
      return {
        text: message.content ?? '',
        thought: message.reasoning_content ?? '',
        refusal: message.refusal ?? '',
        calls,
        media: (message.images ?? []).map(imageOf).join('') + (message.audio?.data ?? ''),
        logprobs: (logprobs?.content ?? []).map(tokenOf),
        finish: finishOf(chatWords[word]!, calls),
      };
    });
    return { candidates, usage: chatUsage(usage) };
  },
  streamed(body) {
    const candidates: (SeenCandidate & { readonly open: Any[]; older?: Any })[] = [];
    let usage: Any;
    for (const chunk of framesOf(body)) {
      usage = chunk.usage ?? usage;
      for (const { index, delta, logprobs, finish_reason: word } of chunk.choices) {
        const said = (candidates[index] ??= { ...nobody(), open: [] });
        said.text += delta.content ?? '';
        said.thought += delta.reasoning_content ?? '';
        said.refusal += delta.refusal ?? '';
        said.media += (delta.images ?? []).map(imageOf).join('') + (delta.audio?.data ?? '');
        said.logprobs.push(...(logprobs?.content ?? []).map(tokenOf));
        if (delta.function_call) {
          said.older ??= { id: '', function: { name: '', arguments: '' } };
          said.older.function.name += delta.function_call.name ?? '';
          said.older.function.arguments += delta.function_call.arguments ?? '';
        }
        for (const { index: at, ...piece } of delta.tool_calls ?? []) {
          if (!said.open[at]) said.open[at] = structuredClone(piece);
          else if (piece.function) said.open[at].function.arguments += piece.function.arguments;
          else said.open[at].custom.input += piece.custom.input;
        }
        if (word) said.finish = chatWords[word]!;
      }
    }
    return {
      candidates: candidates.map(({ open, older, ...said }) => {
        const calls = [...(older ? [older] : []), ...open].map(chatCall);
        return { ...said, calls, finish: finishOf(said.finish, calls) };
      }),
      usage: chatUsage(usage),
    };
  },
};

// ——— responses ———

function responsesSeen({ output, status, incomplete_details: why, usage }: Any): Seen {
  const said = nobody();
  for (const item of output) {
    switch (item.type) {
      case 'message':
        for (const part of item.content) {
          said.text += part.text ?? '';
          said.refusal += part.refusal ?? '';
          said.logprobs.push(...(part.logprobs ?? []).map(tokenOf));
        }
        break;
      case 'reasoning':
        said.thought += (item.content?.length > 0 ? item.content : item.summary).map(({ text }: Any) => text).join('\n\n');
        break;
      case 'function_call':
        said.calls.push({ id: item.call_id, name: item.name, arguments: argumentsOf(item.arguments) });
        break;
      case 'custom_tool_call':
        said.calls.push({ id: item.call_id, name: item.name, arguments: item.input });
        break;
      case 'image_generation_call':
        said.media += item.result;
        break;
      default:
    }
  }
  if (status === 'incomplete') said.finish = why.reason === 'content_filter' ? 'refused' : 'length';
  const { input_tokens: input, output_tokens: spoken, input_tokens_details: read, output_tokens_details: thought } = usage ?? {};
  return {
    candidates: [{ ...said, finish: finishOf(said.finish, said.calls) }],
    usage: counts(input, spoken, read?.cached_tokens, thought?.reasoning_tokens),
  };
}

export const responsesReader: Reader = {
  whole: responsesSeen,
  /** Puts the response together from its pieces; the last event repeats all of it. */
  streamed(body) {
    const frames = framesOf(body);
    const last = frames.at(-1).response;
    const output: Any[] = [];
    for (const { type, item, part, delta, logprobs, output_index: at, content_index: place } of frames) {
      switch (type) {
        case 'response.output_item.added':
          output[at] = structuredClone(item);
          break;
        case 'response.output_item.done': // some send no pieces of arguments, or of a whole item
          output[at] ??= item;
          output[at].arguments ||= item.arguments;
          break;
        case 'response.content_part.added':
          output[at].content[place] = structuredClone(part);
          break;
        case 'response.output_text.delta':
          output[at].content[place].text += delta;
          output[at].content[place].logprobs.push(...(logprobs ?? []));
          break;
        case 'response.refusal.delta':
          output[at].content[place].refusal += delta;
          break;
        case 'response.reasoning_text.delta':
          output[at].content[place].text += delta;
          break;
        case 'response.reasoning_summary_part.added':
          output[at].summary.push(structuredClone(part));
          break;
        case 'response.reasoning_summary_text.delta':
          output[at].summary.at(-1).text += delta;
          break;
        case 'response.function_call_arguments.delta':
          output[at].arguments += delta;
          break;
        case 'response.custom_tool_call_input.delta':
          output[at].input += delta;
          break;
        default:
      }
    }
    return responsesSeen({ ...last, output: output.filter(Boolean) });
  },
};

// ——— messages ———

const messageWords: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'length',
  tool_use: 'tool',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refused',
};

function messagesSeen({ content, stop_reason: word, usage }: Any): Seen {
  const said = nobody();
  for (const block of content) {
    if (block.type === 'text') said.text += block.text;
    if (block.type === 'thinking') said.thought += block.thinking;
    if (block.type === 'tool_use') said.calls.push({ id: block.id, name: block.name, arguments: objectOf(block.input) });
  }
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: read = 0, cache_creation_input_tokens: made = 0, output_tokens_details } = usage;
  return {
    candidates: [{ ...said, finish: finishOf(messageWords[word]!, said.calls) }],
    usage: counts((input ?? 0) + (read ?? 0) + (made ?? 0), output, read ?? 0, output_tokens_details?.thinking_tokens),
  };
}

export const messagesReader: Reader = {
  whole: messagesSeen,
  streamed(body) {
    const content: Any[] = [];
    let message: Any;
    for (const { type, ...frame } of framesOf(body)) {
      if (type === 'message_start') message ??= structuredClone(frame.message);
      if (type === 'content_block_start') content[frame.index] = { ...structuredClone(frame.content_block), json: '' };
      if (type === 'content_block_delta') {
        const { delta } = frame;
        const block = content[frame.index];
        if (delta.type === 'text_delta') block.text += delta.text;
        if (delta.type === 'thinking_delta') block.thinking += delta.thinking;
        if (delta.type === 'input_json_delta') block.json += delta.partial_json;
      }
      if (type === 'content_block_stop' && content[frame.index].json !== '') content[frame.index].input = argumentsOf(content[frame.index].json);
      if (type === 'message_delta') message = { ...message, ...frame.delta, usage: { ...message.usage, ...frame.usage } };
    }
    return messagesSeen({ ...message, content });
  },
};

// ——— generated content ———

function geminiSeen(chunks: readonly Any[]): Seen {
  const candidates: SeenCandidate[] = [];
  const usage: Any = {};
  for (const chunk of chunks) {
    Object.assign(usage, chunk.usageMetadata);
    if (chunk.promptFeedback?.blockReason && !chunk.candidates) candidates[0] ??= { ...nobody(), finish: 'refused' };
    for (const [at, { index = at, content, finishReason, logprobsResult }] of (chunk.candidates ?? []).entries()) {
      const said = (candidates[index] ??= nobody());
      for (const part of content?.parts ?? []) {
        if (part.functionCall) said.calls.push({ id: part.functionCall.id ?? '', name: part.functionCall.name, arguments: objectOf(part.functionCall.args) });
        else if (part.inlineData) said.media += part.inlineData.data;
        else said[part.thought ? 'thought' : 'text'] += part.text ?? '';
      }
      said.logprobs.push(...(logprobsResult?.chosenCandidates ?? []).map(({ token, logProbability }: Any) => [token, logProbability]));
      if (finishReason) said.finish = finishReason === 'STOP' ? 'stop' : finishReason === 'MAX_TOKENS' ? 'length' : 'refused';
    }
  }
  const { promptTokenCount: input, toolUsePromptTokenCount: tools = 0, candidatesTokenCount: output, thoughtsTokenCount: thought = 0 } = usage;
  return {
    candidates: candidates.map((one) => ({ ...one, finish: finishOf(one.finish, one.calls) })),
    usage: counts((input ?? 0) + tools, (output ?? 0) + thought, usage.cachedContentTokenCount, thought),
  };
}

export const geminiReader: Reader = { whole: (body) => geminiSeen([body]), streamed: (body) => geminiSeen(framesOf(body)) };

// ——— as the server has it ———

/** An answer as the server has it in its middle. */
export function seenIn({ candidates, usage }: GenerateResult): Seen {
  return {
    candidates: candidates.map(({ parts, reason, logprobs = [] }) => {
      const said = nobody();
      for (const part of parts) {
        if (part.type === 'text' || part.type === 'thought' || part.type === 'refusal') said[part.type] += part.text;
        if (part.type === 'tool-call') said.calls.push({ id: part.id, name: part.name, arguments: part.custom ? part.json : argumentsOf(part.json) });
        if (part.type === 'media') said.media += part.base64 ?? '';
      }
      said.logprobs.push(...logprobs.map(tokenOf));
      return { ...said, finish: finishOf(reason, said.calls) };
    }),
    usage: usage ? usageSeen(usage) : counts(),
  };
}

const usageSeen = ({ input, output, cached, thought }: Usage) => counts(input, output, cached, thought);
