import { Fault } from '#core/fault';

/** A conversation that is longer than a model's context, alone or with the answer that it asks for, and the numbers that a provider names in its refusal. */

/** Characters of a provider's message that are read. */
const mostRead = 500;

/** What the model takes: OpenAI, vLLM and xAI; Anthropic and Mistral; Google; Copilot; Moonshot; llama.cpp. */
const limits = [
  /\bmaximum (?:context|prompt|model) length (?:is|of) ([\d,]{1,12})/i,
  /(?:> |model with )([\d,]{1,12}) maximum\b/i,
  /\bmaximum number of tokens allowed \(?([\d,]{1,12})/i,
  /\bexceeds the limit of ([\d,]{1,12})/i,
  /\bmodel token limit: ([\d,]{1,12})/i,
  /\bavailable context size \(([\d,]{1,12}) tokens/i,
];
/** What it was sent. */
const lengths = [
  /\b(?:you requested|resulted in|request has|request contains|prompt contains) (?:about |at least )?([\d,]{1,12}) (?:input )?tokens/i,
  /\b(?:input|prompt) token count (?:of |is )?\(?([\d,]{1,12})/i,
  /\btoo long: ([\d,]{1,12}) tokens/i,
  /\(requested: ([\d,]{1,12})\)/i,
  /\brequest \(([\d,]{1,12}) tokens\) exceeds/i,
];

/**
 * Refusals that count the conversation apart from the answer: OpenAI, DeepSeek and OpenRouter, by their sum; vLLM, in several versions, of which the newest stops
 * counting at what is too much (vllm-project/vllm#33418); SGLang; Anthropic; Hugging Face.
 */
const sums = [
  /\bmaximum (?:context|model) length is (?<most>[\d,]{1,12}) tokens\b.{0,40}?\brequested (?<about>about )?(?<sum>[\d,]{1,12}) tokens \(.{0,150}?\b(?<output>[\d,]{1,12}) (?:in|for) the (?:completion|output)\)/i,
  /\bmaximum (?:context|model) length is (?<most>[\d,]{1,12}) tokens\b.{0,40}?\brequested (?<output>[\d,]{1,12}) output tokens and your prompt contains (?<least>at least )?(?<prompt>[\d,]{1,12}) (?:input )?tokens/i,
  /\bmaximum (?:context|model) length is (?<most>[\d,]{1,12}) tokens\b.{0,40}?\brequested (?<output>[\d,]{1,12}) output tokens and your prompt contains (?<least>[\d,]{1,12} characters) \(more than .{1,60} for (?<prompt>[\d,]{1,12}) input tokens\)/i,
  /\bmaximum (?:context|model) length is (?<most>[\d,]{1,12}) tokens and your request has (?<prompt>[\d,]{1,12}) input tokens/i,
  /^You passed (?<prompt>[\d,]{1,12}) input tokens and requested (?<output>[\d,]{1,12}) output tokens\..{0,40} context length is only (?<most>[\d,]{1,12}) tokens/,
  /\bmaximum context length of (?<most>[\d,]{1,12}) tokens\b.{0,60}?: (?<prompt>[\d,]{1,12}) tokens from the input messages and (?<output>[\d,]{1,12}) tokens for the completion/i,
  /\bexceed context limit: (?<prompt>\d{1,9}) \+ (?<output>\d{1,9}) > (?<most>\d{1,9})/,
  /\bmax_new_tokens` must be <= (?<most>\d{1,9})\. Given: (?<prompt>\d{1,9}) `inputs` tokens and (?<output>\d{1,9}) `max_new_tokens`/,
];

/** Output tokens. An answer that ends sooner helps nobody: the conversation has to become shorter. */
const leastRoom = 256;

const numberOf = (digits: string | undefined): number => Number(digits?.replaceAll(',', ''));

const firstOf = (text: string, patterns: readonly RegExp[]) => patterns.map((one) => one.exec(text)).find((found) => found !== null);

/** Output tokens for which there is room behind a conversation; 0 where that is too few, and undefined where the message does not say that it fits alone. */
function roomIn(text: string): number | undefined {
  const { most, about, sum, output, least, prompt } = firstOf(text, sums)?.groups ?? {};
  const length = prompt === undefined ? numberOf(sum) - numberOf(output) : numberOf(prompt);
  const margin = about === undefined ? 0 : Math.ceil(length / 20);
  const left = numberOf(most) - length - margin;
  if (!(numberOf(most) > length)) return undefined;
  const room = least === undefined ? left : Math.min(left, Math.floor(numberOf(output) / 4)); // the length is not known, so the next request asks for much less
  return room < leastRoom ? 0 : room;
}

/** @param message the provider's, unmasked */
export function contextLengthFault(message: string, cause: unknown): Fault {
  const text = message.slice(0, mostRead);
  const outputRoom = roomIn(text);
  if (outputRoom)
    return new Fault('invalid', "The conversation and the longest answer to it are together longer than the model's context.", {
      reason: 'context-length',
      outputRoom,
      cause,
    });
  const [tokens, most] = [numberOf(firstOf(text, lengths)?.[1]), numberOf(firstOf(text, limits)?.[1])];
  const known = tokens > most && outputRoom === undefined ? { context: { tokens, most } } : {};
  return new Fault('invalid', "The conversation is longer than the model's context.", { reason: 'context-length', ...known, cause });
}
