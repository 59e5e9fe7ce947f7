import type { Context } from '#core/context';
import { Fault, ifFound } from '#core/fault';
import { mayCall, type FileSource, type OfferedFile, type OfferedTool, type PromptSource, type ToolSource } from '#core/mcp-offers';
import { hasScope } from '#core/scopes';
import { McpRefused, type McpOffers, type McpResource } from '#kit/mcp/endpoint';

/** What there is at `/server/mcp`. */
export interface Sources {
  /** In this order: of two tools of one name the first is offered. */
  readonly tools: readonly ToolSource[];
  readonly prompts: PromptSource;
  readonly files: FileSource;
  /** Counts a request that may ask no model. @throws Fault */
  readonly enters: (context: Context) => Promise<void>;
}

/** What kept the answer from being one. */
export interface Trouble {
  error?: Error;
}

/** Tools of a list, and their bytes as JSON. */
const [mostTools, mostBytes] = [2000, 8_388_608];
const pageSize = 200;

/** The tool whose right covers reading the files that it finds. */
const searchTool = 'search';

/**
 * What a caller is offered: what its scopes cover elsewhere. A key that is narrowed to tools has these alone: no prompts, and files only together with the search in them.
 *
 * @param trouble gets what the request should be refused for, or has failed with
 */
export function offersFor(sources: Sources, context: Context, trouble: Trouble): McpOffers {
  const { caller } = context;
  const hasFiles = mayCall(caller, searchTool) && hasScope(caller, sources.files.scopes);
  const hasPrompts = !caller.mcpTools && hasScope(caller, sources.prompts.scopes);
  const asked = <Result>(work: () => Promise<Result>) => work().catch((error: unknown) => refused(error, trouble));
  return {
    tools: () => asked(() => toolsOf(sources, context)),
    call: (name, args) =>
      asked(async () => {
        if (!mayCall(caller, name)) return undefined;
        await sources.enters(context);
        for (const source of sources.tools.filter(({ scopes }) => hasScope(caller, scopes))) {
          const answer = await source.call(name, args, context).catch((error: unknown) => answerOf(error));
          if (answer) return answer;
        }
        return undefined;
      }),
    prompts: () => asked(async () => (hasPrompts ? sources.prompts.prompts(caller) : [])),
    prompt: (name) => asked(async () => (hasPrompts ? sources.prompts.text(caller, name) : undefined)),
    resources: (cursor) =>
      asked(async () => {
        if (!hasFiles) return { items: [] };
        const found = await sources.files.files(caller, { after: afterIn(cursor), limit: pageSize + 1 });
        const items = found.slice(0, pageSize);
        return { items: items.map(resourceOf), ...(found.length > pageSize ? { next: String(items.at(-1)!.id) } : {}) };
      }),
    resource: (uri) =>
      asked(async () => {
        const place = hasFiles ? placeIn(uri) : undefined;
        return place && ifFound(sources.files.text(caller, place.datasetId, place.id));
      }),
  };
}

async function toolsOf({ tools: all }: Sources, context: Context): Promise<readonly OfferedTool[]> {
  const found = new Map<string, OfferedTool>();
  let bytes = 0;
  for (const source of all.filter(({ scopes }) => hasScope(context.caller, scopes)))
    for await (const tool of source.tools(context)) {
      if (found.has(tool.name) || !mayCall(context.caller, tool.name)) continue;
      bytes += Buffer.byteLength(JSON.stringify(tool));
      if (found.size >= mostTools || bytes > mostBytes) return [...found.values()];
      found.set(tool.name, tool);
    }
  return [...found.values()];
}

const ofRequest: ReadonlySet<string> = new Set(['quota-spent', 'rate-limited', 'overloaded', 'timed-out', 'unauthenticated', 'internal']);

/** Faults of the tool, and not of the request, whose status says so: what its user may not spend at all is one of the request. */
const isOfTool = (error: unknown): error is Fault =>
  error instanceof Fault && !ofRequest.has(error.code) && !(error.code === 'forbidden' && error.details.field === 'model');

/** What a model is told of a call that was refused or has failed. @throws what concerns the whole request */
function answerOf(error: unknown) {
  if (isOfTool(error)) return { text: error.message, isError: true };
  throw error;
}

function refused(error: unknown, trouble: Trouble): never {
  if (error instanceof McpRefused) throw error;
  if (isOfTool(error)) throw new McpRefused('invalid', error.message);
  trouble.error = error instanceof Error ? error : new Error('An offer failed.', { cause: error });
  throw new McpRefused('failed', error instanceof Fault ? error.message : 'The server failed.');
}

function afterIn(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (!/^[1-9]\d{0,14}$/.test(cursor)) throw new McpRefused('invalid', 'cursor must be that of the page before.');
  return Number(cursor);
}

/** RFC 6570 */
export const fileTemplate = 'dragoman://datasets/{dataset}/files/{file}';

function placeIn(uri: string): { readonly datasetId: number; readonly id: number } | undefined {
  const found = uri.length > 200 ? null : /^dragoman:\/\/datasets\/([1-9]\d{0,14})\/files\/([1-9]\d{0,14})$/.exec(uri);
  return found ? { datasetId: Number(found[1]), id: Number(found[2]) } : undefined;
}

const resourceOf = ({ datasetId, id, filename, dataset, type, bytes }: OfferedFile): McpResource => ({
  uri: fileTemplate.replace('{dataset}', String(datasetId)).replace('{file}', String(id)),
  name: filename,
  title: `${dataset}: ${filename}`,
  type,
  bytes,
});
