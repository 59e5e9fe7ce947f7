import type { Extra, JsonObject } from './json.ts';

/** The speaker of a turn. Tool results are in a `user` turn. */
export type Role = 'system' | 'user' | 'model';

/** One contribution to a conversation. System turns stay where the client put them. */
export interface Turn {
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly extra?: Extra;
}

export const textTurn = (role: Role, text: string): Turn => ({ role, parts: [{ type: 'text', text }] });

export type Part = TextPart | RefusalPart | MediaPart | ToolCallPart | ToolResultPart | ThoughtPart | SearchPart | ForeignPart;

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly citations?: readonly Citation[];
  readonly extra?: Extra;
}

/** The source of a stretch of text. `start` and `end` count characters (Unicode code points) from the beginning of the part; the end is exclusive. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
}

/** The model's own text when it declines. */
export interface RefusalPart {
  readonly type: 'refusal';
  readonly text: string;
}

/** The text of parts, without that of refusals. */
export const textIn = (parts: readonly Part[]): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The words of parts that the reader sees as an answer: text and refusals. */
export const wordsIn = (parts: readonly Part[]): string => parts.map((part) => (part.type === 'text' || part.type === 'refusal' ? part.text : '')).join('');

/** An image, sound or document. Exactly one of `base64`, `url` and `fileId` is present; base64 text is never decoded on the way. */
export interface MediaPart {
  readonly type: 'media';
  readonly kind: 'image' | 'audio' | 'video' | 'file';
  /** MIME type, if the client gave one, with its parameters. */
  readonly mediaType?: string;
  readonly base64?: string;
  readonly url?: string;
  readonly fileId?: string;
  readonly name?: string;
  /** The words of a sound in an answer, or the next ones of them. */
  readonly transcript?: string;
  /** The detail level of an image: `low`, `high`, or a level of the model's own; absent means `auto`. */
  readonly detail?: string;
  readonly extra?: Extra;
}

/** A tool call of the model. `json` is the JSON text of the arguments, unchanged, or free text for a custom tool. */
export interface ToolCallPart {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  readonly json: string;
  /** The tool takes free text, not JSON. */
  readonly custom?: boolean;
  readonly extra?: Extra;
}

export interface ToolResultPart {
  readonly type: 'tool-result';
  readonly id: string;
  readonly parts: readonly (TextPart | MediaPart | ForeignPart)[];
  readonly failed?: boolean;
  /** What it is the result of has been approved, and is called before the model goes on; until then the parts say that it was not. */
  readonly approved?: ApprovedCall;
  readonly extra?: Extra;
}

/** Reasoning shown by the model. Its signature or encrypted form travels in `extra`. */
export interface ThoughtPart {
  readonly type: 'thought';
  readonly text: string;
  readonly extra?: Extra;
}

/** A web search by the gateway for the model. Emitted when the search begins and, with the same id, when it ends; models do not read it. */
export interface SearchPart {
  readonly type: 'search';
  readonly id: string;
  readonly query: string;
  readonly state: 'searching' | 'completed' | 'failed';
  readonly sources: readonly { readonly url: string; readonly title: string }[];
  /** Returned by a client without its results, which only the provider that searched can read. */
  readonly isLost?: true;
}

/** A kind of content that only its own dialect knows: carried, not understood. */
export interface ForeignPart {
  readonly type: 'foreign';
  /** The provider searched the web: other dialects report that, too. */
  readonly search?: Omit<SearchPart, 'type'>;
  /** What the gateway did with tools of MCP servers, for clients that are shown that. */
  readonly step?: ServerStep;
  readonly dialect: string;
  readonly value: JsonObject;
}

export type Tool = FunctionTool | CustomTool | ForeignTool;

interface Declared {
  /** The client declared the tool within the conversation, in an item that providers of its dialect are sent. */
  readonly inItem?: true;
}

export interface FunctionTool extends Declared {
  readonly type: 'function';
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the arguments, an object schema. */
  readonly parameters?: JsonObject;
  readonly strict?: boolean;
  readonly extra?: Extra;
}

/** A tool that takes free text, which may be bound to a grammar. */
export interface CustomTool extends Declared {
  readonly type: 'custom';
  readonly name: string;
  readonly description?: string;
  readonly format?: JsonObject;
  readonly extra?: Extra;
}

/** A tool type that only its own dialect knows: carried, not understood. */
export interface ForeignTool extends Declared {
  readonly type: 'foreign';
  /** The tool is a web search: other dialects have one, too. */
  readonly search?: WebSearch;
  /** The tool stands for tools of MCP servers, which the gateway calls: no provider sees it. */
  readonly wanted?: WantedTools;
  /** The tool stands for those of one MCP server, which the gateway calls if it knows the server: a provider of its dialect may. */
  readonly server?: WantedServer;
  /** The tool is a group of callable tools, which have longer names in other dialects. */
  readonly namespace?: Namespace;
  /** The client's field, where that is not among its tools. */
  readonly field?: string;
  readonly dialect: string;
  readonly value: JsonObject;
}

/** Tools under a common name. */
export interface Namespace {
  readonly name: string;
  readonly description?: string;
  readonly tools: readonly (FunctionTool | CustomTool)[];
}

/** `allowed` restricts the declared tools by name; `tool` forces a call of the named one. */
export type ToolChoice = { readonly type: 'auto' | 'none' | 'required' } | { readonly type: 'tool'; readonly name: string } | AllowedTools;

export interface AllowedTools {
  readonly type: 'allowed';
  readonly names: readonly string[];
  readonly mode: 'auto' | 'required';
  /** Tools without a name that are allowed as well. Absent: none. */
  readonly unnamed?: readonly UnnamedTool[];
  /** Only a call of one of them is demanded: after it all tools are allowed. */
  readonly isDemand?: true;
}

/** A choice of tools that only providers of its dialect have, or of those of an MCP server. */
export interface UnnamedTool {
  readonly dialect: string;
  /** As the client wrote it. */
  readonly value: JsonObject;
  /** The MCP server by its label, and which of its tools. Without a tool: all of them. */
  readonly server?: { readonly label: string; readonly tool?: string };
}

/** The name of the web search in a tool choice. */
export const webSearchName = 'web_search';

export interface WebSearch {
  /** Hosts with their subdomains, optionally with a path prefix: only these are searched. */
  readonly allowed?: readonly string[];
  readonly blocked?: readonly string[];
  /** Most searches for one answer. */
  readonly most?: number;
  /** Where the user is, roughly. */
  readonly near?: Readonly<Partial<Record<'city' | 'region' | 'country' | 'timezone', string>>>;
  /** How much of what is found is read. */
  readonly contextSize?: string;
  /** Pages must not be opened: the engine's own excerpts have to do. */
  readonly unopened?: boolean;
  /** Names of further options of the tool, which only its own dialect understands. */
  readonly others: readonly string[];
}

export const isWebSearch = (tool: Tool): tool is ForeignTool & { readonly search: WebSearch } => tool.type === 'foreign' && tool.search !== undefined;

/** Which tools of MCP servers a request may have called: a list of the client's, and calls that its user has approved. */
export interface WantedTools {
  readonly tools: readonly WantedTool[];
  /** Calls that waited for an approval. */
  readonly resumed?: Resumed;
}

export interface WantedTool {
  readonly server: number;
  readonly tool: string;
  /** The client wants to be asked before each call. */
  readonly asks: boolean;
}

/** A call as the model made it. `json` are the arguments. */
export interface ServerToolCall {
  readonly id: string;
  /** As the model sees it. */
  readonly name: string;
  readonly json: string;
  readonly server: number;
  /** At the server. */
  readonly tool: string;
  readonly digest: string;
  /** What tells its approval from every other one, where there was one: a call that was approved is made once. */
  readonly approval?: string;
}

/** Calls that wait for their user, with all turns since the conversation of the request; the last one makes these calls. */
export interface WaitingCalls {
  readonly turns: readonly Turn[];
  readonly calls: readonly ServerToolCall[];
  /** What came of the other calls of the last turn, which needed no approval. Absent: there are none. */
  readonly results?: readonly ToolResultPart[];
}

/** Calls that waited, and go on. */
export interface TakenCalls extends WaitingCalls {
  /** Tells them from all others that waited. */
  readonly id: number;
}

export interface Resumed extends TakenCalls {
  /** Ids of the calls that were approved; the others were not. */
  readonly approved: readonly string[];
}

/** An MCP server as a client names it. */
export interface WantedServer {
  readonly label: string;
  /** Absent: the label is the name of a server of the caller's. */
  readonly url?: string;
  /** The server is one that only the provider knows. */
  readonly isProviders: boolean;
  /** The only tools that may be called. Absent: all. */
  readonly allowed?: ToolsMeant;
  /** Tools called without approval. */
  readonly unasked?: ToolsMeant | 'all';
  /** Tools that need approval even if `unasked` names them. */
  readonly asked?: ToolsMeant;
  /** A member with a credential of the client's for the server. */
  readonly credential?: string;
  readonly field: string;
  /** The client has the list of its tools. */
  readonly isListed: boolean;
}

/** Tools by their names, or those that say that they change nothing. */
export interface ToolsMeant {
  readonly names?: readonly string[];
  readonly readOnly?: boolean;
}

/** A call of a tool of a labelled server. */
interface LabelledCall {
  readonly id: string;
  readonly label: string;
  /** At the server. */
  readonly tool: string;
  readonly json: string;
}

/** A call that the client has approved. */
export interface ApprovedCall extends LabelledCall {
  /** The first characters of that of the definition that was shown. */
  readonly digest: string;
}

/** The list of a server's tools, a call that was made, or one that waits for the client's approval. */
export type ServerStep =
  | { readonly type: 'listed'; readonly label: string; readonly tools: readonly (FunctionTool & { readonly isReadOnly: boolean })[]; readonly error?: string }
  | ({
      readonly type: 'called';
      readonly text: string;
      readonly isError: boolean;
      /** The id of the request for its approval, where there was one. */
      readonly approval?: string;
    } & LabelledCall)
  | ({ readonly type: 'asked'; readonly digest: string } & LabelledCall);
