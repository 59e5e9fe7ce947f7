import type { Extra, JsonObject } from './json.ts';

/** Who speaks. Tool results stand in a `user` turn. */
export type Role = 'system' | 'user' | 'model';

/** One contribution to a conversation. System turns stay where the client put them. */
export interface Turn {
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly extra?: Extra;
}

export type Part = TextPart | RefusalPart | MediaPart | ToolCallPart | ToolResultPart | ThoughtPart | ForeignPart;

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly extra?: Extra;
}

/** The model's own words when it declined. */
export interface RefusalPart {
  readonly type: 'refusal';
  readonly text: string;
}

/** An image, sound or document. Exactly one of `base64`, `url` and `fileId` is there; base64 text is never decoded on the way. */
export interface MediaPart {
  readonly type: 'media';
  readonly kind: 'image' | 'audio' | 'video' | 'file';
  /** MIME type, where the client named one. */
  readonly mediaType?: string;
  readonly base64?: string;
  readonly url?: string;
  readonly fileId?: string;
  readonly name?: string;
  /** How closely an image is to be looked at: `low`, `high`, or a word of the model's; `auto` where nothing is said. */
  readonly detail?: string;
  readonly extra?: Extra;
}

/** The model asks for a tool. `json` is the JSON text of the arguments as it came, or free text for a custom tool. */
export interface ToolCallPart {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  readonly json: string;
  /** The tool takes free text, not JSON. */
  readonly custom?: boolean;
  readonly extra?: Extra;
}

/** What the tool answered, by the id of its call. */
export interface ToolResultPart {
  readonly type: 'tool-result';
  readonly id: string;
  readonly parts: readonly (TextPart | MediaPart | ForeignPart)[];
  readonly failed?: boolean;
  readonly extra?: Extra;
}

/** Reasoning shown by the model. Its signature or encrypted form travels in `extra`. */
export interface ThoughtPart {
  readonly type: 'thought';
  readonly text: string;
  readonly extra?: Extra;
}

/** A kind of content that only its own dialect knows: carried, not understood. */
export interface ForeignPart {
  readonly type: 'foreign';
  readonly dialect: string;
  readonly value: JsonObject;
}

export type Tool = FunctionTool | CustomTool | ForeignTool;

export interface FunctionTool {
  readonly type: 'function';
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments, an object schema. */
  readonly parameters?: JsonObject;
  readonly strict?: boolean;
  readonly extra?: Extra;
}

/** Takes free text, possibly bound to a grammar. */
export interface CustomTool {
  readonly type: 'custom';
  readonly name: string;
  readonly description?: string;
  readonly format?: JsonObject;
}

/** A tool type that only its own dialect knows: carried, not understood. */
export interface ForeignTool {
  readonly type: 'foreign';
  readonly dialect: string;
  readonly value: JsonObject;
}

/** `allowed` narrows the declared tools by name; `tool` names the one that must be called. */
export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | { readonly type: 'tool'; readonly name: string }
  | { readonly type: 'allowed'; readonly names: readonly string[]; readonly mode: 'auto' | 'required' };
