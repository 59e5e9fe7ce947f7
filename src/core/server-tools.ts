import type { FunctionTool, ServerToolCall, WantedTool } from './conversation.ts';

/** A tool of an MCP server as a model sees it. */
export interface ServerTool {
  readonly declared: FunctionTool;
  readonly server: number;
  /** Its name at the server. */
  readonly name: string;
  /** Tells the definition that the model was shown. */
  readonly digest: string;
  readonly needsApproval: boolean;
}

/** A call that was made, and what came of it. */
export interface CalledTool extends Pick<ServerToolCall, 'id' | 'name' | 'server'> {
  readonly text: string;
  readonly isError: boolean;
}

/** The tools that the gateway calls for models. */
export interface ServerTools {
  /** Those of the wanted tools that the caller may have called; the others are named in `unknown`. @throws the signal's reason */
  offered(
    caller: ServerToolCaller,
    wanted: readonly WantedTool[],
    signal: AbortSignal,
  ): Promise<{ readonly tools: readonly ServerTool[]; readonly unknown: readonly string[] }>;
  /** Calls a tool for the caller, whose right is checked right before. Failures are texts for the model. @throws the signal's reason */
  call(
    caller: ServerToolCaller,
    call: Pick<ServerToolCall, 'server' | 'tool' | 'digest' | 'json'>,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly isError: boolean }>;
}

export interface ServerToolCaller {
  readonly userId: number;
  readonly teamIds: readonly number[];
}
