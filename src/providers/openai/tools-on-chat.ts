import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import { Fault } from '#core/fault';
import { isEmpty, isObject, own } from '#core/json';
import type { Vendor } from '../vendors.ts';

/**
 * Calls that a model refuses on the chat API and accepts on the Responses API, at the same address and with the same key: function tools unless the effort is
 * `none` (`tools`), function tools only where an effort is named (`effort`), or every call (`all`).
 * BerriAI/litellm#34569, pipecat-ai/pipecat#4043, openai/openai-openapi#541
 */
export interface ChatRefusals {
  readonly refused: 'effort' | 'tools' | 'all';
  /** The address has no Responses API. */
  readonly isAlone?: true;
}

/** What is publicly known of a vendor's models. @param model its upstream name; a deployment on Azure may have any */
export function chatRefusalsAt(vendor: Vendor | undefined, model: string): ChatRefusals | undefined {
  if (vendor !== 'openai' && vendor !== 'azure') return undefined;
  const [, major = '', minor = '0'] = /^gpt-(\d{1,3})(?:\.(\d{1,3}))?(?:-|$)/.exec(model) ?? [];
  const generation = Number(major) * 100 + Number(minor);
  if (generation < 502) return undefined;
  return { refused: generation < 505 ? 'effort' : 'tools' };
}

export type ToolsWire = 'chat' | 'chat without reasoning' | 'responses';

/** The API on which a model accepts a call. */
export function wireFor(call: GenerateCall, known: ChatRefusals | undefined): ToolsWire {
  if (!known || !isRefused(call, known)) return 'chat';
  if (known.refused === 'all') return 'responses';
  return known.isAlone || needsChat(call) ? 'chat without reasoning' : 'responses';
}

function isRefused(call: GenerateCall, { refused }: ChatRefusals): boolean {
  if (refused === 'all') return true;
  if (!hasTools(call)) return false;
  const effort = call.reasoning?.effort;
  return effort !== 'none' && (refused === 'tools' || effort !== undefined);
}

const hasTools = ({ tools }: GenerateCall) => tools.some((tool) => tool.type !== 'foreign' || tool.namespace !== undefined);

/** Does a call use what only the chat API has? */
function needsChat({ sampling, extra, turns }: GenerateCall): boolean {
  const { candidates = 1, logitBias = {}, stop } = sampling;
  const { modalities, audio, prediction } = own(extra, 'openai-chat');
  if (candidates > 1 || !isEmpty(logitBias) || stop !== undefined || prediction !== undefined || audio !== undefined) return true;
  return (Array.isArray(modalities) && modalities.includes('audio')) || turns.some(({ parts }) => parts.some(isAudio));
}

const isAudio = (part: Part): boolean => part.type === 'media' && part.kind === 'audio';

/** What the refusal of a call on the chat API teaches. @returns undefined unless the provider names the Responses API in it */
export function learnedFrom(error: unknown, call: GenerateCall): ChatRefusals | undefined {
  if (!(error instanceof Fault) || error.details.instead !== 'responses') return undefined;
  if (!hasTools(call)) return { refused: 'all' };
  return { refused: call.reasoning?.effort === undefined ? 'tools' : 'effort' };
}

/** Does a refusal say that the address has no Responses API? */
export function isMissing(error: unknown): boolean {
  if (!(error instanceof Fault) || error.details.absent) return false;
  const { cause } = error.details;
  return isObject(cause) && (cause['status'] === 404 || cause['status'] === 405 || cause['status'] === 501);
}

/** The warning where a call with tools stays on the chat API. */
export const withoutReasoning = 'reasoning_effort: sent as none, since the model accepts tools on the chat API only without reasoning.';
