import type { FunctionTool } from '#core/conversation';
import { textOf, type Json, type JsonObject } from '#core/json';
import { placeOf, type SearchPassages } from '#core/passages';
import type { Run, ToolContext, ToolOutcome } from '#core/run';
import { requireScope } from '#core/scopes';
import type { AgentServerTool, ServerTools } from '#core/server-tools';
import { textAsWritten } from '#kit/json/numbers';
import type { DeepQuestion } from '../deep-question.ts';
import { passageSource, type PageSource, type Source, type Sources } from './sources.ts';

/** What came of a tool, with the sources in it. */
export interface FoundOutcome extends ToolOutcome {
  readonly found?: readonly Source[];
}

export interface ResearchTool {
  readonly declared: FunctionTool;
  /** Its name for clients, where models know it by another. */
  readonly name?: string;
  /** The name of its MCP server; null: it is ours. */
  readonly server: string | null;
  readonly isReadOnly: boolean;
  readonly needsApproval: boolean;
  /** As of `RunToolCall`. */
  readonly approvedWith?: string;
  /** It takes a `query`: every task is looked up with it first. */
  readonly looksUp?: true;
  readonly finds?: true;
  readonly work: (args: JsonObject, asking: ToolContext) => Promise<FoundOutcome>;
}

/** The web, as far as the operator opened it. */
export interface Web {
  /** The best results first. Undefined: no search engine is configured. */
  readonly search: ((query: string, asking: Asking & { readonly most: number }) => Promise<readonly Omit<PageSource, 'type'>[]>) | undefined;
  /** The beginning of a page as text; undefined where it cannot be read. */
  read(url: string, asking: Asking): Promise<string | undefined>;
}

interface Asking {
  readonly owner: string;
  readonly signal: AbortSignal;
}

export interface ToolsDeps {
  readonly search: SearchPassages;
  readonly web: Web;
  readonly tools: Pick<ServerTools, 'call'>;
}

/** Passages of one search, unless fewer are wanted; results of a search of the web, and pages of it that are read at once. */
const [mostPassages, mostResults, mostPages] = [10, 8, 3];
const longestQuery = 400;
/** Characters of each source that clients are shown. */
const shownCharacters = 300;

const texts = (name: string, description: string) => ({
  type: 'object',
  properties: { [name]: { type: 'string', description } },
  required: [name],
  additionalProperties: false,
});

const asksDatasets = ({ datasets, limit }: DeepQuestion): boolean => limit > 0 && (datasets === 'all' || datasets.length > 0);
const asksWeb = ({ search }: Web, { limit, web }: DeepQuestion): boolean => limit > 0 && web && search !== undefined;

/** Whether there is anything to look the question up in, beside tools of MCP servers. */
export const isLookedUp = ({ web }: Pick<ToolsDeps, 'web'>, question: DeepQuestion): boolean => asksDatasets(question) || asksWeb(web, question);

/** What researchers may use: what the request named. @param serverTools tools of MCP servers that were offered when the run began */
export function toolsFor(
  deps: ToolsDeps,
  question: DeepQuestion,
  serverTools: readonly AgentServerTool[],
): (run: Run, sources: Sources) => readonly ResearchTool[] {
  return (run, sources) => [
    ...(asksDatasets(question) ? [searchDatasets(deps.search, question)] : []),
    ...(asksWeb(deps.web, question) ? [searchWeb(deps.web), readPage(deps.web, sources)] : []),
    ...serverTools.map((tool) => serverTool(deps.tools, tool)),
    ...(serverTools.length > 0 ? [readScratch(run)] : []),
  ];
}

const own = { server: null, isReadOnly: true, needsApproval: false } as const;

function searchDatasets(search: SearchPassages, { datasets, limit }: DeepQuestion): ResearchTool {
  return {
    ...own,
    looksUp: true,
    finds: true,
    declared: {
      type: 'function',
      name: 'search_datasets',
      description: "Searches the user's documents by words and meaning, and returns numbered passages.",
      parameters: texts('query', 'A question or key words.'),
    },
    async work({ query }, { caller, context }) {
      const question = queryIn(query);
      if (question === '') return nothing;
      const { requestId, step, progress, permits, app, tags, signal } = context;
      const found = await search({ caller, datasets, question, limit: Math.min(limit, mostPassages), requestId, step, progress, permits, app, tags, signal });
      return outcomeOf(found.passages.filter(({ cut }) => cut === undefined).map(passageSource));
    },
  };
}

function searchWeb(web: Web): ResearchTool {
  return {
    ...own,
    looksUp: true,
    finds: true,
    declared: {
      type: 'function',
      name: 'search_web',
      description: 'Searches the web, reads the best pages, and returns them as numbered sources.',
      parameters: texts('query', 'What to look for, as for a search engine.'),
    },
    async work({ query }, { caller, context: { signal } }) {
      const words = queryIn(query);
      if (words === '' || !web.search) return nothing;
      const asking = { owner: String(caller.userId), signal };
      const found = (await web.search(words, { ...asking, most: mostResults })).slice(0, mostResults);
      const pages = await Promise.all(found.slice(0, mostPages).map(({ url }) => web.read(url, asking)));
      return outcomeOf(found.map(({ url, title, text }, at) => ({ type: 'page', url, title, text: pages[at] || text })));
    },
  };
}

/** Opens pages that a search found, and no others: an address can carry what was read to whoever owns it. */
function readPage(web: Web, sources: Sources): ResearchTool {
  return {
    ...own,
    finds: true,
    declared: {
      type: 'function',
      name: 'read_page',
      description: 'Reads a page that a search of the web found.',
      parameters: texts('url', 'The address, as the search gave it.'),
    },
    async work({ url }, { caller, context: { signal } }) {
      const page = sources.page(textOf(url));
      if (!page) return { text: 'No search has found a page at this address: only pages that were found are read.', isError: true };
      const text = await web.read(page.url, { owner: String(caller.userId), signal });
      return text === undefined ? { text: 'The page cannot be read.', isError: true } : outcomeOf([{ ...page, text }]);
    },
  };
}

/** Characters of a long result that are read at once. */
const pieceCharacters = 16_000;

/** Reads results that were too long to be shown whole. */
function readScratch(run: Run): ResearchTool {
  return {
    ...own,
    declared: {
      type: 'function',
      name: 'read_scratch',
      description: 'Reads on in a result of a tool that was too long to be shown whole.',
      parameters: {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'The name that stands where the result was cut.' },
          from: { type: 'integer', minimum: 0, description: 'The first character that is read.' },
        },
        required: ['name', 'from'],
        additionalProperties: false,
      },
    },
    async work({ name, from }) {
      const start = typeof from === 'number' && Number.isSafeInteger(from) && from >= 0 ? from : 0;
      const piece = await run.scratch(textOf(name), start, pieceCharacters);
      return piece ? { text: piece.text, isError: false } : { text: 'There is no such result.', isError: true };
    },
  };
}

function serverTool(
  tools: Pick<ServerTools, 'call'>,
  { declared, server, serverName, name, digest, isReadOnly, needsApproval, asks }: AgentServerTool,
): ResearchTool {
  return {
    declared,
    name,
    server: serverName,
    isReadOnly,
    needsApproval,
    // what the rules of the server ask for each time nobody approves once for all
    ...(asks === 'always' ? {} : { approvedWith: `${server}/${digest}/${name}` }),
    async work(args, { caller, context, ask }) {
      requireScope(caller, 'mcp');
      return tools.call(caller, { server, tool: name, digest, json: textAsWritten(args) }, context.signal, ask);
    },
  };
}

const queryIn = (query: Json | undefined): string => textOf(query).trim().slice(0, longestQuery).toWellFormed();

const nothing: FoundOutcome = { text: 'Nothing was found.', isError: false };

/** As clients are told: the beginnings. */
function outcomeOf(found: readonly Source[]): FoundOutcome {
  if (found.length === 0) return nothing;
  const entries = found.map((source) => {
    const head = source.type === 'page' ? `${source.title}\n${source.url}` : placeOf(source);
    return `${head}\n${source.text.slice(0, shownCharacters).toWellFormed()}${source.text.length > shownCharacters ? '…' : ''}`;
  });
  return { text: entries.join('\n\n'), isError: false, found };
}
