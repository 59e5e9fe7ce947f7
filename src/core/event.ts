import type { Citation, ForeignPart, MediaPart, SearchPart } from './conversation.ts';
import type { Extra } from './json.ts';
import type { Counts } from './price.ts';

/**
 * The events of an answer. A whole answer is the fold of its events, so streaming and not streaming share one path. Order: `started` once; the content;
 * `finished` once for each candidate; `usage` at most once. Failures are thrown, not emitted. `passed` reports what was forwarded unparsed since the last one:
 * its tokens (negative to correct an earlier overestimate), what the first candidate said in it where that is known, whether thoughts were among it, and the
 * amounts that are not counted in tokens. `unseen`: nothing was forwarded, this output is kept from the client. `extra` of a text or a thought (its signature)
 * and `citations` belong to the current part and end it: later content starts another part. `tokens` of content are there where the model itself counts them.
 */
export type GenerateEvent =
  | Started
  | {
      readonly type: 'text';
      readonly candidate: number;
      readonly text: string;
      readonly tokens?: number;
      readonly logprobs?: readonly TokenLogprob[];
      readonly citations?: readonly Citation[];
      readonly extra?: Extra;
    }
  | { readonly type: 'thought'; readonly candidate: number; readonly text: string; readonly tokens?: number; readonly extra?: Extra }
  | { readonly type: 'refusal'; readonly candidate: number; readonly text: string }
  | ToolCallPiece
  | PartEvent
  | { readonly type: 'passed'; readonly tokens: number; readonly text?: string; readonly thoughts?: true; readonly counts?: Counts; readonly unseen?: true }
  | { readonly type: 'finished'; readonly candidate: number; readonly reason: FinishReason; readonly raw: string; readonly extra?: Extra }
  | {
      readonly type: 'usage';
      readonly usage: Usage;
      /** The provider put it where clients of its API do not look for it. */
      readonly misplaced?: true;
    };

/** Milliseconds between two counts of an answer that is forwarded unparsed, and between two journal entries of a running answer. */
export const noteMilliseconds = 2000;

export interface Started {
  readonly type: 'started';
  /** The answering model, as the provider names it; else the target's upstream name. */
  readonly model: string;
  /** Fields of the call that the target ignores, as `field: reason`. */
  readonly ignored: readonly string[];
  /** The model was not held to the schema of the call: the answer may not conform to it. */
  readonly unpromised?: true;
  /** The provider's usage so far when its answer began. */
  readonly usage?: Usage;
  readonly extra?: Extra;
}

/**
 * A piece of a tool call. The first piece has the name; the joined `json` of all pieces is the arguments. `call` counts the tool calls of a candidate from 0.
 */
export interface ToolCallPiece {
  readonly type: 'tool-call';
  readonly candidate: number;
  readonly call: number;
  readonly id: string;
  readonly name?: string;
  readonly json: string;
  readonly tokens?: number;
  /** Of a tool of free text; each piece says so. */
  readonly custom?: boolean;
  readonly extra?: Extra;
}

export interface PartEvent {
  readonly type: 'part';
  readonly candidate: number;
  readonly part: MediaPart | SearchPart | ForeignPart;
  /** The part is a report of what the provider is doing, such as an unfinished picture: it is no part of the whole answer. */
  readonly progress?: true;
}

export type FinishReason = 'stop' | 'length' | 'tool' | 'refused';

/** Did the answer break off? Its last calls may be incomplete. */
export const isCut = (reason: FinishReason | undefined): boolean => reason === 'length' || reason === 'refused';

/**
 * Tokens. `input` includes those read from and written to the provider's cache, `output` includes thoughts. `source` is who counted them: a bill is only as
 * good as its source. A `partial` usage is the provider's count at the time its answer broke off.
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  /** Tokens written to the provider's cache with a lifetime of some minutes, and of an hour. */
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly thought?: number;
  /** Tokens of sound within `input` and `output`. */
  readonly audioInput?: number;
  readonly audioOutput?: number;
  /** Output tokens, within `output`, sampled besides the answer; `max_tokens` does not bound them. */
  readonly aside?: number;
  /** Web searches that the provider made and bills one by one. */
  readonly searches?: number;
  /** What the tokens cost, as a multiple of the model's price: half of it where the provider took its time, more where it hurried. Absent: 1. */
  readonly rate?: number;
  readonly source: 'provider' | 'estimated' | 'partial';
  readonly extra?: Extra;
}

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** UTF-8 bytes of the token, if the provider reports them. */
  readonly bytes?: readonly number[] | null;
  /** Its number in the vocabulary of the model, if the provider reports it. */
  readonly id?: number;
  readonly top?: readonly Omit<TokenLogprob, 'top'>[];
}

/** Whether the reader would notice the event. After such an event a call can no longer move to another target. */
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

/** Events that arrived together, in order: passing through all the wrappers costs more than an event. */
export type Events = readonly GenerateEvent[];
