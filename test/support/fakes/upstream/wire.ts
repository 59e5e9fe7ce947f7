/** What one provider protocol looks like from the provider's side. A new wire is one file in wires/ and one word in its index. */
export interface Wire {
  readonly name: string;
  /** Is a request with this method and path one of ours? The path is as it came, query included. */
  speaks(method: string, path: string): boolean;
  /** Never throws: what is not understood is left empty. */
  asked(body: unknown, path: string): Asked;
  /** The whole answer, ready for JSON. */
  whole(asked: Asked, said: Answer): object;
  /** The same answer as server-sent events, without blank lines and without the frame that ends a stream. */
  frames(asked: Asked, said: Answer): string[];
  /** The frame that ends a good stream, where the wire has one. */
  readonly last?: string;
  /** The body of a refusal. */
  fault(status: number, words: Words): object;
  /** A refusal inside a stream that began with 200. */
  faultFrame(status: number, words: Words): string;
}

/** What a request asks, as far as it takes to answer sensibly. */
export interface Asked {
  readonly model: string;
  /** What the user said last. */
  readonly text: string;
  readonly stream: boolean;
  /** Does a stream want its usage? */
  readonly usage: boolean;
  readonly candidates: number;
  readonly maxTokens?: number;
  readonly promptTokens: number;
}

/** What the model says, in no wire's words. */
export interface Answer {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** In the pieces in which a stream sends them. A token of ours is a piece. */
  readonly text: readonly string[];
  readonly thought: readonly string[];
  readonly tools: readonly ToolCall[];
  readonly toolShape: ToolShape;
  /** Of the thoughts or the calls, as the provider signs or seals them; of its own where the wire has one always. */
  readonly signature?: string;
  /** The member that carries thoughts on the chat wire; `reasoning_content` unless said. */
  readonly thoughtField?: string;
  /** The wire's word for a reason, or any word, or none. */
  readonly finish: { readonly reason: 'stop' | 'length' | 'tool' } | { readonly raw: string | null } | 'missing';
  readonly usage: AnswerUsage;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text; of a custom tool any text. */
  readonly json: string;
  readonly custom?: true;
  /** Of the tool, on the responses wire. */
  readonly namespace?: string;
}

/**
 * How a stream breaks tool calls up. `pieces`: id and name first, then the arguments, always with the index. `whole`: one piece a call. `interleaved`: pieces of all calls in turn.
 * `no-index`: as Mistral does. `name-again`: every piece has id, type and an empty name. `object`: the arguments are an object instead of JSON text.
 */
export type ToolShape = 'pieces' | 'whole' | 'interleaved' | 'no-index' | 'name-again' | 'object';

/** `numbers` may be anything but numbers. `with-finish`: in the last chunk that has choices, as DeepSeek and Groq do, instead of one of its own. */
export type AnswerUsage =
  | { readonly how: 'missing' }
  | { readonly how: 'null' }
  | { readonly how: 'twice' | 'once' | 'with-finish'; readonly numbers: { readonly input: unknown; readonly output: unknown; readonly total: unknown } };

/** A provider's own words for a refusal; what is left out is as the wire's real provider says it. */
export interface Words {
  readonly message?: string;
  readonly type?: string;
  readonly code?: string | null;
  /** A 404 that names the model, rather than the address. */
  readonly model?: string;
}

/** Words with the space that follows them: our tokens. Joined they are the text again. */
export const pieces = (text: string): string[] => text.match(/\s*\S+\s?|\s+$/gu) ?? [];
