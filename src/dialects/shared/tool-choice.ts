import type { GenerateCall } from '#core/call';
import { isWebSearch, webSearchName, type AllowedTools, type Tool, type ToolChoice, type UnnamedTool } from '#core/conversation';

/** The tools that a wire supports. */
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
  if (choice?.type === 'tool' && !isGiven(choice.name, tools, wire)) {
    ignored.add(reason);
    return undefined;
  }
  if (choice?.type !== 'allowed') return choice;
  const { unnamed: all = [], ...named } = choice;
  const names = choice.names.filter((name) => isGiven(name, tools, wire));
  const unnamed = all.filter((one) => one.dialect === wire.dialect && isDeclared(one, tools));
  if (names.length < choice.names.length || unnamed.length < all.length) ignored.add(reason);
  if (names.length + unnamed.length === 0) return { type: 'none' }; // no other tool was allowed
  return { ...named, names, ...(unnamed.length > 0 ? { unnamed } : {}) };
}

/** A server whose tools the gateway calls is declared no longer. */
const isDeclared = ({ dialect, server }: UnnamedTool, tools: readonly Tool[]): boolean =>
  tools.some((tool) => tool.type === 'foreign' && tool.dialect === dialect && (!server || tool.server?.label === server.label));

/** The same for an API without a choice among some of the tools: only those are declared. */
export function allowedAlone({ names, mode }: AllowedTools, tools: readonly Tool[]): { readonly choice: ToolChoice; readonly tools: readonly Tool[] } {
  const nameOf = (tool: Tool) => (tool.type === 'foreign' ? tool.value['name'] : tool.name);
  return { choice: { type: mode }, tools: tools.filter((tool) => names.some((name) => name === nameOf(tool))) };
}

/** Must the model call a tool? */
export const isForced = (choice: ToolChoice | undefined): boolean =>
  choice?.type === 'required' || choice?.type === 'tool' || (choice?.type === 'allowed' && choice.mode === 'required');

const isGiven = (name: string, tools: readonly Tool[], { dialect, custom, search }: Wire): boolean =>
  tools.some((tool) => {
    if (search && isWebSearch(tool) && name === webSearchName) return true;
    if (tool.type === 'foreign') return tool.dialect === dialect && tool.value['name'] === name;
    return tool.name === name && (custom || tool.type === 'function');
  });
