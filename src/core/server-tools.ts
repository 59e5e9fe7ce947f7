import type { OtherServer } from './call.ts';
import type { FunctionTool, ServerToolCall, WantedServer, WantedTool } from './conversation.ts';
import type { AskUser } from './questions.ts';

/** A tool of an MCP server as a model sees it. */
export interface ServerTool {
  readonly declared: FunctionTool;
  readonly server: number;
  readonly name: string;
  /** Tells the definition that the model was shown. */
  readonly digest: string;
  readonly needsApproval: boolean;
  /** It says that it changes nothing. */
  readonly isReadOnly: boolean;
}

/** A call that was made, and its result. */
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
  /**
   * Judges servers that a provider would connect to, as those that the gateway connects to.
   * @throws Fault `forbidden` or `invalid` naming the field
   */
  permits(caller: ServerToolCaller, others: readonly OtherServer[]): void;
  /**
   * The tools of a server that the client names. Undefined: it is none that the gateway calls, and the provider may.
   * @throws Fault `not-found`, `forbidden` or `invalid` naming the field; the signal's reason
   */
  ofServer(caller: ServerToolCaller, wanted: WantedServer, signal: AbortSignal): Promise<NamedServer | undefined>;
  /**
   * Calls a tool for the caller, whose right is checked right before. A call with an approval is made once: later it returns that result. Failures are texts
   * for the model.
   * @param ask what the server wants to know of the user meanwhile; absent: nobody can be asked
   * @throws the signal's reason
   */
  call(
    caller: ServerToolCaller,
    call: Pick<ServerToolCall, 'server' | 'tool' | 'digest' | 'json' | 'approval'>,
    signal: AbortSignal,
    ask?: AskUser,
  ): Promise<{ readonly text: string; readonly isError: boolean }>;
}

/** A server that a client named, with its tools. */
export interface NamedServer {
  readonly tools: readonly ServerTool[];
  /** Why there are none. */
  readonly error?: string;
}

export interface ServerToolCaller {
  readonly userId: number;
  readonly teamIds: readonly number[];
  readonly scopes?: readonly string[];
  readonly mcpTools?: readonly string[];
}

export interface AgentServerTool extends ServerTool {
  readonly serverName: string;
  /** It says of itself that it changes nothing. */
  readonly isReadOnly: boolean;
  /** As the rules of the server and of the operator say: before no call, until the user has approved the definition, or before each call. */
  readonly asks: 'never' | 'first' | 'always';
  /** Whether the user has approved the definition. */
  readonly isApproved: boolean;
}

/** An MCP server, as a tool of an agent refers to it. */
export interface AgentServer {
  readonly name: string;
  readonly wantsSignIn: boolean;
  /** Why it could not be used the last time; null: it could. */
  readonly problem: string | null;
}

export interface AgentServerTools extends Pick<ServerTools, 'call'> {
  /** The allowed tools of these servers, or of each those named. @throws the signal's reason */
  of(
    caller: ServerToolCaller,
    wanted: readonly { readonly server: number; readonly tools?: readonly string[] }[],
    signal: AbortSignal,
  ): Promise<readonly AgentServerTool[]>;
  /** @throws Fault `not-found` for a server that the caller may not use */
  one(caller: ServerToolCaller, server: number): Promise<AgentServer>;
  /** Remembers that the user has approved a definition. */
  remember(caller: ServerToolCaller, tool: Pick<ServerToolCall, 'server' | 'tool' | 'digest'>): Promise<void>;
}
