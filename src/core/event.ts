import type { Citation, ForeignPart, MediaPart, SearchPart } from './conversation.ts';
import type { Extra } from './json.ts';
import type { Counts } from './price.ts';

/**
 * An answer, one piece after the other. A whole answer is the fold of its events, so that streaming and not streaming are one path.
 * Order: `started` once; the content; `finished` once for each candidate; `usage` at most once. Failures are thrown, they are no events.
 * `passed` stands for what was forwarded unparsed since the last one: its tokens (below 0 where the one before had too many), whether thoughts were among it, and
 * what of it is not counted in tokens.
 * `extra` of a text or a thought (its signature) and `citations` belong to the part that is being written, and end it: what follows is another part.
 */
export type GenerateEvent =
  | Started
  | {
      readonly type: 'text';
      readonly candidate: number;
      readonly text: string;
      readonly logprobs?: readonly TokenLogprob[];
      readonly citations?: readonly Citation[];
      readonly extra?: Extra;
    }
  | { readonly type: 'thought'; readonly candidate: number; readonly text: string; readonly extra?: Extra }
  | { readonly type: 'refusal'; readonly candidate: number; readonly text: string }
  | ToolCallPiece
  | { readonly type: 'part'; readonly candidate: number; readonly part: MediaPart | SearchPart | ForeignPart }
  | { readonly type: 'passed'; readonly tokens: number; readonly thoughts?: true; readonly counts?: Counts }
  | { readonly type: 'finished'; readonly candidate: number; readonly reason: FinishReason; readonly raw: string; readonly extra?: Extra }
  | { readonly type: 'usage'; readonly usage: Usage };

/**
 * Milliseconds between two `passed` of an answer that is forwarded unparsed, and between two journal entries of a running answer.
 */
export const noteMilliseconds = 2000;

export interface Started {
  readonly type: 'started';
  /** The model that answers, as the provider names it; else the target's upstream name. */
  readonly model: string;
  /** Fields of the call that the target does not honour, as `field: reason`. */
  readonly ignored: readonly string[];
  /** What the provider had counted when it began to answer. */
  readonly usage?: Usage;
  readonly extra?: Extra;
}

/** A piece of a tool call. The first has its name; the pieces of `json` joined are the arguments. `call` counts the tool calls of a candidate from 0. */
export interface ToolCallPiece {
  readonly type: 'tool-call';
  readonly candidate: number;
  readonly call: number;
  readonly id: string;
  readonly name?: string;
  readonly json: string;
  readonly custom?: boolean;
  readonly extra?: Extra;
}

export type FinishReason = 'stop' | 'length' | 'tool' | 'refused';

/**
 * Tokens. `input` includes those read from the provider's cache and written into it, `output` includes thoughts. `source` is who counted them: a bill is only as good
 * as its source. A `partial` usage of a provider is what it had counted when its answer broke off.
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  /** Written into the provider's cache for some minutes, and for an hour. */
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly thought?: number;
  readonly source: 'provider' | 'estimated' | 'partial';
  readonly extra?: Extra;
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** UTF-8 bytes of the token, where the provider gives them. */
  readonly bytes?: readonly number[] | null;
  readonly top?: readonly Omit<TokenLogprob, 'top'>[];
}

/** Is the event one that a reader would notice? After it a call can no longer be moved to another target. */
export function speaks(event: GenerateEvent): boolean {
  switch (event.type) {
    case 'text':
    case 'thought':
    case 'refusal':
    case 'tool-call':
    case 'part':
    case 'passed':
      return true;
    case 'started':
    case 'finished':
    case 'usage':
      return false;
    default:
      return event satisfies never;
  }
}

/** Events that came at once, in their order: a step through all the wrappers costs more than an event. */
export type Events = readonly GenerateEvent[];
