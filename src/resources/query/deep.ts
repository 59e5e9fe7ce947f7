import { randomUUID } from 'node:crypto';
import { ignoringTools } from '#core/ignoring';
import { type GenerateCall, plainCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import { textIn, textTurn, type Turn } from '#core/conversation';
import type { Events } from '#core/event';
import { Fault, invalid } from '#core/fault';
import { inBothVerbs } from '#core/generate';
import { Conversation, unknownThing } from '#http/noun-route';
import type { DeepQuestion, EarlierRun } from '../deep-question.ts';
import { framed } from '../material-frame.ts';
import { warnOfUnusedFields, lookedUpIn, modelIn, modelOf, personaIn, type Asked } from './choices.ts';
import { emptyCompletion } from './completion.ts';
import type { QueryDeps } from './deps.ts';
import type { QueryFields } from './fields.ts';
import { datasetsSaid } from './looked-up.ts';
import { mcpFieldsIn } from './mcp-tools.ts';
import { inOwnCodes } from '../native-context.ts';
import { dateIn, timestamp } from './today.ts';
import { questionOf, textOfTurn, turnsOf } from './turns.ts';
import { ignoringWeb } from './web.ts';

/** A question that a run researches: it is begun, and the answer names it. @throws Fault `invalid` naming the field; `forbidden` for a key without the scope */
export function deepQuery(deps: QueryDeps, { caller, fields, files, whole: wholeMessage, output, streams }: Asked): Conversation {
  refuseUnresearched(fields, files.length > 0, output);
  refuseScope(caller);
  let turns = turnsOf(fields.message);
  if (turns.at(-1)?.role !== 'user') throw invalid('message', 'must end with a question');
  const persona = personaIn(fields.persona);
  const mcp = mcpFieldsIn(fields, caller);
  const where = lookedUpIn(fields);
  const today = dateIn(fields.timezone ?? undefined, deps.clock);
  const uuid = randomUUID();
  let id = 0;

  const begun = async (call: GenerateCall, context: Context): Promise<Events> => {
    warnOfUnusedFields(fields, context);
    ignoringTools(mcp.unknown, context);
    if (!deps.web.search && where.limit > 0 && where.live > 0) ignoringWeb(context);
    modelOf(call.model, deps.models(context.caller), context);
    const prompt = await deps.promptOf(context.caller, persona);
    if (wholeMessage) {
      await deps.affords(call, context);
      turns = turnsOf(await wholeMessage());
    }
    const { answered, reports } = await earlierRuns(deps, { fields, question: questionOf(turns) }, context);
    const question: DeepQuestion = {
      text: questionOf(turns),
      turns: [...turns.slice(0, -1), ...reports, turns.at(-1)!],
      model: call.model,
      datasets: where.datasets,
      limit: where.limit,
      web: fields.live !== 0,
      tools: mcp.tools,
      instructions: [...turns.filter(({ role }) => role === 'system').map(textOfTurn), fields.system_prompt ?? prompt].join('\n\n'),
      today,
      ...(typeof fields.temperature === 'number' ? { temperature: fields.temperature } : {}),
      ...(fields.reasoning_effort ? { effort: fields.reasoning_effort } : {}),
    };
    id = answered ?? (await beginning(deps, call, question, context));
    return said(call.model, answered === undefined ? `The research has begun: follow it at /server/get-deep-agent, with deep_agent_id ${id}.` : goesOn);
  };
  const answer = (call: GenerateCall, context: Context) =>
    begun(call, context).catch((error: unknown) => {
      throw inOwnCodes(error);
    });

  return new Conversation({
    call: plainCall({ dialect: 'native', model: modelIn(fields.model, deps.defaults().chat, deps.models(caller)), turns }),
    generate: inBothVerbs(async function* (call, context) {
      yield await answer(call, context);
    }, answer),
    streams: streams ?? fields.streaming ?? undefined,
    app: fields.app_name ?? undefined,
    soFar: (text) => emptyCompletion(uuid, text),
    async whole({ started, candidates }, { requestId }) {
      const message = textIn(candidates[0]?.parts ?? []);
      await deps.keep({ uuid, userId: caller.userId, requestId, model: started.model, message: questionOf(turns), answer: message, passages: [] });
      return {
        ...emptyCompletion(uuid, message),
        type: 'completion',
        added_obj: { deep_agent_id: id },
        provenance: {
          model: started.model,
          datasets: datasetsSaid(where),
          persona: { id: persona, version: null },
          agents: [],
          timestamp: timestamp(deps.clock),
        },
      };
    },
  });
}

const goesOn = 'The research goes on with this answer.';

const said = (model: string, text: string): Events => [
  { type: 'started', model, ignored: [] },
  { type: 'text', candidate: 0, text },
  { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
];

/** Begins a run that can be paid for now. @throws Fault as the first call of the run would */
async function beginning(deps: QueryDeps, call: GenerateCall, question: DeepQuestion, context: Context): Promise<number> {
  await deps.affords(call, context);
  await refuseUnknownDatasets(deps, question, context);
  return deps.deepRuns.begin(question, context);
}

/** What a run has no use for would be lost without a word. @throws Fault `invalid` */
function refuseUnresearched({ tools, tools_to_execute: execute }: QueryFields, hasFiles: boolean, output: Asked['output']): void {
  const refused = (field: string, why: string) => new Fault('invalid', `${field}: ${why}`, { field });
  if (hasFiles) throw refused('file', 'a deep agent reads no files of a request: put them into a dataset, and name it in dataset.');
  if (tools && tools.length > 0) throw refused('tools', 'a deep agent calls no tools of its client: name tools of MCP servers in enabled_mcp_tools.');
  if (execute && execute.length > 0) throw refused('tools_to_execute', 'calls of a deep agent are approved at /server/mine/runs/{id}/approve.');
  if (output && output.type !== 'text') throw refused('mode', 'this plugin gives its answer as JSON, which a deep agent does not.');
}

function refuseScope({ scopes }: Caller): void {
  if (scopes?.includes('agent_builder') === false) throw new Fault('forbidden', 'A deep agent needs a key with the scope agent_builder.', { reason: 'scope' });
}

/** Looks nothing up: a dataset that is not there is refused at once, not in the middle of a run. @throws Fault `not-found` */
async function refuseUnknownDatasets({ search }: QueryDeps, { datasets, text }: DeepQuestion, { caller, requestId, permits, signal }: Context): Promise<void> {
  if (datasets === 'all' || datasets.length > 0) await search({ caller, datasets, question: text, limit: 0, requestId, permits, signal });
}

/** Characters of an earlier report that are read. */
const longestReport = 40_000;

/** What earlier runs are for this question: one that waits is given it as its answer, and the others' reports are read first. @throws Fault `not-found`, `conflict` */
async function earlierRuns(
  { deepRuns }: QueryDeps,
  { fields: { deep_agent_id: id, prior_deep_agent_ids: prior }, question }: { readonly fields: QueryFields; readonly question: string },
  { caller }: Context,
): Promise<{ readonly answered?: number; readonly reports: readonly Turn[] }> {
  const found = async (run: number, field: string): Promise<EarlierRun> => {
    const one = await deepRuns.find(caller.userId, run);
    if (!one) throw new Fault('not-found', unknownThing('deep agent run').message, { field });
    return one;
  };
  const own = typeof id === 'number' ? await found(id, 'deep_agent_id') : undefined;
  if (typeof id === 'number' && own?.question) {
    await deepRuns.answer(caller, id, own.question, question);
    return { answered: id, reports: [] };
  }
  if (own && !own.isOver) throw new Fault('conflict', 'deep_agent_id: the run is not over, and waits for no answer.', { field: 'deep_agent_id' });
  const earlier = await Promise.all((prior ?? []).map((run, at) => found(run, `prior_deep_agent_ids[${at}]`)));
  const reports = [...earlier, ...(own ? [own] : [])].flatMap(({ report }) => (report === null ? [] : [report]));
  return {
    reports: reports.map((report) => textTurn('user', framed(`The report of an earlier run:\n\n${report.slice(0, longestReport).toWellFormed()}`))),
  };
}
