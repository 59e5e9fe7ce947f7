import type { GenerateCall } from '#core/call';
import { isWebSearch, webSearchName, type Tool, type ToolChoice } from '#core/conversation';

/** What a wire can be given. */
interface Wire {
  readonly dialect: string;
  /** It has tools that take free text. */
  readonly custom: boolean;
  /** Its own search of the web can be named. */
  readonly search: boolean;
}

const reason = 'tool_choice: a tool that it names cannot be given to the provider.';

/** The choice among tools, as far as it names those that a wire is given: a provider refuses the name of a tool that it was not told of. */
export function possibleChoice({ toolChoice: choice, tools }: GenerateCall, wire: Wire, ignored: Set<string>): ToolChoice | undefined {
  if (choice?.type === 'tool' && !isGiven(choice.name, tools, wire)) {
    ignored.add(reason);
    return undefined;
  }
  if (choice?.type !== 'allowed') return choice;
  const names = choice.names.filter((name) => isGiven(name, tools, wire));
  if (names.length < choice.names.length) ignored.add(reason);
  return names.length > 0 ? { ...choice, names } : { type: 'none' }; // no other was allowed
}

const isGiven = (name: string, tools: readonly Tool[], { dialect, custom, search }: Wire): boolean =>
  tools.some((tool) => {
    if (search && isWebSearch(tool) && name === webSearchName) return true;
    if (tool.type === 'foreign') return tool.dialect === dialect && tool.value['name'] === name;
    return tool.name === name && (custom || tool.type === 'function');
  });
