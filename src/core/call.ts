import type { Task } from './task.ts';
import type { Extra, JsonObject } from './json.ts';
import type { Tool, ToolChoice, Turn } from './conversation.ts';
import type { Passthrough } from './passthrough.ts';

/** A request for text in no dialect: what was asked, as the client asked it. A member the client did not send is absent. */
export interface GenerateCall {
  /** As the client wrote it. */
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly output: Output;
  readonly sampling: Sampling;
  readonly reasoning?: Reasoning;
  readonly stream: boolean;
  readonly extra: Extra;
  /** Present where the client's bytes may go through unread, should the target speak the same dialect. */
  readonly passthrough?: Passthrough;
}

/** Whatever goes through the gateway. */
export type Call = GenerateCall | Task;

/** Is it a conversation, to be answered with text? */
export const isConversation = (call: Call): call is GenerateCall => !('ask' in call);

/** `json` is any JSON object; `schema` is JSON that conforms. */
export type Output =
  | { readonly type: 'text' }
  | { readonly type: 'json' }
  | { readonly type: 'schema'; readonly schema: JsonObject; readonly name?: string; readonly description?: string; readonly strict?: boolean };

export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** Upper bound of the answer's tokens, thoughts included, for each candidate. */
  readonly maxTokens?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  /** How many answers to make; 1 when absent. */
  readonly candidates?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  /** Log probabilities are wanted, with so many alternatives a token (0–20). */
  readonly logprobs?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
}

/** Present: the model is to think, as it thinks best where nothing more is said. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';
}
