import type { GenerateCall } from '#core/call';
import { isWebSearch, webSearchName, type AllowedTools, type Tool, type ToolChoice } from '#core/conversation';

interface Wire {
  readonly dialect: string;
  /** It has custom tools, whose input is free text. */
  readonly custom: boolean;
  /** A tool choice can name its own web search. */
  readonly search: boolean;
}

const reason = 'tool_choice: a tool that it names cannot be given to the provider.';

/** The tool choice, reduced to the tools that the wire is sent: a provider refuses the name of a tool that was not declared. */
export function possibleChoice({ toolChoice: choice, tools }: GenerateCall, wire: Wire, ignored: Set<string>): ToolChoice | undefined {
  if (choice?.type === 'tool' && !givenNames(tools, wire).has(choice.name)) {
    ignored.add(reason);
    return undefined;
  }
  if (choice?.type !== 'allowed') return choice;
  const { unnamed: all = [], ...named } = choice;
  const given = givenNames(tools, wire);
  const names = choice.names.filter((name) => given.has(name));
  const hosted = tools.filter((tool) => tool.type === 'foreign' && tool.dialect === wire.dialect);
  const labels = new Set(hosted.map((tool) => tool.type === 'foreign' && tool.server?.label));
  // A server whose tools the gateway calls is declared no longer.
  const unnamed = all.filter(({ dialect, server }) => dialect === wire.dialect && (server ? labels.has(server.label) : hosted.length > 0));
  if (names.length < choice.names.length || unnamed.length < all.length) ignored.add(reason);
  if (names.length + unnamed.length === 0) return { type: 'none' }; // no other tool was allowed
  return { ...named, names, ...(unnamed.length > 0 ? { unnamed } : {}) };
}

/** The same for an API without a choice among some of the tools: only those are declared. */
export function allowedAlone({ names, mode }: AllowedTools, tools: readonly Tool[]): { readonly choice: ToolChoice; readonly tools: readonly Tool[] } {
  const nameOf = (tool: Tool) => (tool.type === 'foreign' ? tool.value['name'] : tool.name);
  const allowed = new Set<unknown>(names);
  return { choice: { type: mode }, tools: tools.filter((tool) => allowed.has(nameOf(tool))) };
}

/** Must the model call a tool? */
export const isForced = (choice: ToolChoice | undefined): boolean =>
  choice?.type === 'required' || choice?.type === 'tool' || (choice?.type === 'allowed' && choice.mode === 'required');

/** What a choice can name of the declared tools. */
function givenNames(tools: readonly Tool[], { dialect, custom, search }: Wire): ReadonlySet<unknown> {
  const names = new Set<unknown>();
  for (const tool of tools) {
    if (search && isWebSearch(tool)) names.add(webSearchName);
    if (tool.type !== 'foreign') {
      if (custom || tool.type === 'function') names.add(tool.name);
    } else if (tool.dialect === dialect) names.add(tool.value['name']);
  }
  return names;
}
