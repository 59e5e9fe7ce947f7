import type { Extra, JsonObject } from './json.ts';

/** Who speaks. Tool results stand in a `user` turn. */
export type Role = 'system' | 'user' | 'model';

/** One contribution to a conversation. System turns stay where the client put them. */
export interface Turn {
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly extra?: Extra;
}

export type Part = TextPart | RefusalPart | MediaPart | ToolCallPart | ToolResultPart | ThoughtPart | SearchPart | ForeignPart;

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
  readonly extra?: Extra;
}

/** What a stretch of a text rests on. `start` and `end` count characters (Unicode code points) from the beginning of its part; the end is not included. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
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

/** The gateway searched the web for the model. Said when it begins, and once more, with the same id, when it is over; models read nothing of it. */
export interface SearchPart {
  readonly type: 'search';
  readonly id: string;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
  readonly sources: readonly { readonly url: string; readonly title: string }[];
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
  /** It is a search of the web: other dialects have one, too. */
  readonly search?: WebSearch;
  readonly dialect: string;
  readonly value: JsonObject;
}

/** `allowed` narrows the declared tools by name; `tool` names the one that must be called. */
export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | { readonly type: 'tool'; readonly name: string }
  | { readonly type: 'allowed'; readonly names: readonly string[]; readonly mode: 'auto' | 'required' };

/** What the search of the web is called where a choice of tools names it. */
export const webSearchName = 'web_search';

/** What a search of the web keeps to. */
export interface WebSearch {
  /** Hosts with all below them, perhaps with the beginning of a path: nothing else is found. */
  readonly allowed?: readonly string[];
  readonly blocked?: readonly string[];
  /** Searches for one answer. */
  readonly most?: number;
  /** Pages are not to be opened: what the engine knows of them is enough. */
  readonly unopened?: boolean;
  /** Names of what the tool says besides, which its own dialect alone understands. */
  readonly others: readonly string[];
}

export const isWebSearch = (tool: Tool): tool is ForeignTool & { readonly search: WebSearch } => tool.type === 'foreign' && tool.search !== undefined;
