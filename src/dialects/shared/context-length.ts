import { Fault } from '#core/fault';

/** A conversation that is longer than a model's context, and the numbers that a provider names in its refusal. */

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
  /\b(?:you requested|resulted in|request has|request contains|prompt contains) (?:about )?([\d,]{1,12}) (?:input )?tokens/i,
  /\b(?:input|prompt) token count (?:of |is )?\(?([\d,]{1,12})/i,
  /\btoo long: ([\d,]{1,12}) tokens/i,
  /\(requested: ([\d,]{1,12})\)/i,
  /\brequest \(([\d,]{1,12}) tokens\) exceeds/i,
];

function numberIn(text: string, patterns: readonly RegExp[]): number {
  const [, digits] = patterns.map((one) => one.exec(text)).find((found) => found !== null) ?? [];
  return Number(digits?.replaceAll(',', ''));
}

/** @param message the provider's, unmasked */
export function contextLengthFault(message: string, cause: unknown): Fault {
  const text = message.slice(0, mostRead);
  const [tokens, most] = [numberIn(text, lengths), numberIn(text, limits)];
  const known = tokens > most ? { context: { tokens, most } } : {};
  return new Fault('invalid', "The conversation is longer than the model's context.", { reason: 'context-length', ...known, cause });
}
