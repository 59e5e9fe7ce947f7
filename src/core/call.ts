import type { Sampling } from './sampling.ts';
import type { Extra, JsonObject } from './json.ts';
import type { Tool, ToolChoice, Turn } from './conversation.ts';
import type { Passthrough } from './passthrough.ts';

/** A request for text in no dialect, with the values the client sent. A member the client did not send is absent. */
export interface GenerateCall {
  /** Name of the dialect that the client spoke; absent in calls that the gateway makes itself. */
  readonly dialect?: string;
  /** As the client wrote it. */
  readonly model: string;
  readonly turns: readonly Turn[];
  /** Neighbouring turns of the model, and neighbouring texts in one, are pieces of one answer. */
  readonly inPieces?: boolean;
  /** What the user asked, for the log, where the last turn is not the user's own. */
  readonly asked?: string;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  /** Most calls of tools that are made for the client, by the provider or by the gateway. */
  readonly mostToolCalls?: number;
  /** The client's wire holds one tool call per answer (`functions`): parallel calls are turned off where the provider can, without a warning where it cannot. */
  readonly takesOneCall?: true;
  readonly output: Output;
  readonly sampling: Sampling;
  readonly reasoning?: Reasoning;
  readonly stream: boolean;
  /** The client's own user, as the client names them to providers. */
  readonly endUser?: string;
  /** What tokens cost in the service tier that the client asks for, as a multiple of the usual price of a model, by its name upstream; absent: no more than usual. */
  readonly tierRate?: (model: string) => number;
  /** Other models that the provider may ask for this call: where the caller may use few models, each has to be one of them. Absent: none. */
  readonly otherModels?: readonly OtherModel[];
  /** MCP servers that the provider may connect to for this call: each has to be one that the caller may use. Absent: none. */
  readonly otherServers?: readonly OtherServer[];
  readonly extra: Extra;
  /** Fields that the gateway itself keeps for the client: a provider without them gets a warning, and is no reason to refuse a strict client. */
  readonly kept?: readonly string[];
  /** Present where the client's bytes may be forwarded unparsed, if the target speaks the same dialect. */
  readonly passthrough?: Passthrough;
}

/** A model with the field that names it, as in `fallbacks[0].model`. */
export interface OtherModel {
  readonly model: string;
  readonly field: string;
}

/** An MCP server with the field that names it, as in `mcp_servers[0].url`. */
export interface OtherServer {
  /** Absent: a server that only the provider knows, such as a connector. */
  readonly url?: string;
  readonly field: string;
}

/** A call without tools, answered whole and by a text, unless it says otherwise. */
export const plainCall = (call: Pick<GenerateCall, 'model' | 'turns'> & Partial<GenerateCall>): GenerateCall => ({
  tools: [],
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
  ...call,
});

/** `json` is any JSON object; `schema` is JSON that conforms. */
export type Output = { readonly type: 'text' } | { readonly type: 'json' } | SchemaOutput;

export interface SchemaOutput {
  readonly type: 'schema';
  readonly schema: JsonObject;
  readonly name?: string;
  readonly description?: string;
  readonly strict?: boolean;
  /** The value is a string, and the answer is its text, without quotes. */
  readonly bare?: true;
}

/** Present: the model is to think; without further members it chooses how much. */
export interface Reasoning {
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';
  /** Thinking tokens, where the client gave a number: `effort` is the nearest one for wires without budgets. */
  readonly budget?: number;
  /** The client is not to see the thoughts. */
  readonly hidden?: boolean;
}

/** Does a wire put the call into other words than the client's? What a client wrote in the words of the wire is between it and the provider. */
export const isTranslated = (call: Pick<GenerateCall, 'dialect'>, wire: string): boolean => call.dialect !== wire;
