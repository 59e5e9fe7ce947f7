import type { Caller, Context } from './context.ts';
import type { JsonObject } from './json.ts';

/** What a key may use that is narrowed to scopes, where one of these is among them: the same as elsewhere, for the scope `mcp` alone is that of the address. */
export interface Scoped {
  readonly scopes: readonly string[];
}

/** A tool that the gateway offers to clients of the Model Context Protocol. */
export interface OfferedTool {
  /** At most 128 letters, digits, `_` and `-`. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject;
  /** A call changes nothing. */
  readonly isReadOnly: boolean;
}

export interface ToolAnswer {
  readonly text: string;
  /** The same as JSON. */
  readonly structured?: JsonObject;
  readonly isError: boolean;
}

/** Tools of one kind, as the caller may use them now. Nobody without one of its scopes comes here. */
export interface ToolSource extends Scoped {
  /** Tools of which none is among those the caller's key is narrowed to may be left out. @throws Fault */
  tools(context: Context): AsyncIterable<OfferedTool>;
  /**
   * Calls a tool for the caller, whose right is checked right before.
   * @returns undefined where this source has no tool of the name
   * @throws Fault, whose message the client gets
   */
  call(name: string, args: Readonly<Record<string, unknown>>, context: Context): Promise<ToolAnswer | undefined>;
}

export interface OfferedPrompt {
  readonly name: string;
  readonly description: string;
}

/** Prompts that the caller may use. */
export interface PromptSource extends Scoped {
  prompts(caller: Caller): Promise<readonly OfferedPrompt[]>;
  /** Undefined: there is none of the name. */
  text(caller: Caller, name: string): Promise<string | undefined>;
}

export interface OfferedFile {
  readonly datasetId: number;
  readonly id: number;
  readonly filename: string;
  /** The full name of its dataset. */
  readonly dataset: string;
  readonly type: string | null;
  /** Of the original. */
  readonly bytes: number;
}

/** Files that the caller may read. */
export interface FileSource extends Scoped {
  /** By id, those behind `after`. */
  files(caller: Caller, asked: { readonly after: number; readonly limit: number }): Promise<readonly OfferedFile[]>;
  /** The text of a file. @throws Fault `not-found`, `too-large` */
  text(caller: Caller, datasetId: number, id: number): Promise<{ readonly type: string; readonly text: string }>;
}

/** Whether the key of a caller may call the tool of a name over MCP. */
export const mayCall = ({ mcpTools }: Pick<Caller, 'mcpTools'>, name: string): boolean => mcpTools === undefined || mcpTools.includes(name);
