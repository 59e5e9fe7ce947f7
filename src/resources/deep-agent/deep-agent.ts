import { faultOf } from '#core/fault';
import type { PlanItem, Run, RunLoop } from '#core/run';
import type { AgentServerTool, ServerTools } from '#core/server-tools';
import type { DeepQuestion } from '../deep-question.ts';
import { clarified, furtherTasks, isEnding, planned } from './deciding.ts';
import { atOnce, mostCycles, spentOf } from './limits.ts';
import { Plan } from './plan.ts';
import { questionIn } from './question.ts';
import { reported } from './reporting.ts';
import { researched, type Finding } from './researching.ts';
import { isLookedUp, toolsFor, type ToolsDeps } from './tools.ts';

/** The tools of MCP servers as researchers have them. */
export interface ResearchServerTools extends Pick<ServerTools, 'call'> {
  offered(...asked: Parameters<ServerTools['offered']>): Promise<{ readonly tools: readonly AgentServerTool[]; readonly unknown: readonly string[] }>;
}

export interface DeepAgentDeps extends Omit<ToolsDeps, 'tools'> {
  readonly tools: ResearchServerTools;
  /** Tokens that a model reads; undefined: nothing is known of it. */
  readonly contextOf: (model: string) => number | undefined;
}

/** Tokens of a model of which nothing is known, and bytes of a token: rather too few. */
const [usualContext, bytesOfToken] = [32_768, 3];

/**
 * The loop of a deep run: it asks back where it must, plans, has the tasks of the plan researched at the same time, looks at what came of them and plans on,
 * up to eight times, and writes a report that cites its sources. An answer that cannot be read as what it was asked for ends nothing: the message is then the
 * only task, nothing is missing, or the findings are the report.
 */
export const deepAgent =
  (deps: DeepAgentDeps): RunLoop =>
  async (run) => {
    const given = questionIn(run.asked);
    const room = Math.floor(((deps.contextOf(given.model) ?? usualContext) * bytesOfToken) / 2);
    const serverTools = await offeredTools(run, deps, given);
    const question = await clarified(run, given);
    if (serverTools.length === 0 && !isLookedUp(deps, question))
      await warned(run, 'nowhere', 'Nothing is looked up: the request names no datasets and no tools, and the web is not searched.');
    const plan = new Plan(run);
    const findings: Finding[] = [];
    let tasks = await planned(run, question);
    for (let cycle = 1; ; cycle++) {
      const begun = { plan, items: await plan.add(tasks), cycle };
      findings.push(...(await researchedAll(run, begun, { question, toolsFor: toolsFor(deps, question, serverTools), room })));
      const spent = await run.step(`used/${cycle}`, async () => spentOf(run.limits, run.used()) ?? null);
      if (spent !== null) await warned(run, 'spent', `The research ends here: the run has used most of ${spent}.`);
      if (spent !== null) break;
      tasks = await furtherTasks(run, { question, findings, known: plan.tasks, room, cycle });
      if (tasks.length === 0) break;
      if (cycle < mostCycles) continue;
      await plan.add(tasks, 'dropped');
      await warned(run, 'cycles', `The research ends here, after ${mostCycles} cycles.`);
      break;
    }
    return reported(run, question, findings, room);
  };

/** The tools of MCP servers that the request names, as they are when the run begins: what is changed later is not called. */
async function offeredTools(run: Run, { tools }: DeepAgentDeps, { tools: wanted }: DeepQuestion): Promise<readonly AgentServerTool[]> {
  if (wanted.length === 0) return [];
  const offered = await run.step('tools', async () => {
    const { tools: found, unknown } = await tools.offered(await run.caller(), wanted, run.signal);
    for (const name of unknown.slice(0, 20)) run.emit({ event: 'warning', data: { message: `enabled_mcp_tools: ${name}: there is no such tool` } });
    return JSON.stringify(found);
  });
  return JSON.parse(offered) as readonly AgentServerTool[];
}

const warned = (run: Run, key: string, message: string): Promise<void> =>
  run.step(`warned/${key}`, async () => run.emit({ event: 'warning', data: { message } }));

interface Begun {
  readonly plan: Plan;
  readonly items: readonly PlanItem[];
  readonly cycle: number;
}

type Research = Omit<Parameters<typeof researched>[1], 'task' | 'toolsFor'> & { readonly toolsFor: ReturnType<typeof toolsFor> };

/** Each task by a researcher of its own. One that fails ends nothing, unless none of them found anything. */
async function researchedAll(run: Run, { plan, items, cycle }: Begun, research: Research): Promise<readonly Finding[]> {
  const failures: unknown[] = [];
  const found = await run.all(
    items,
    async (item): Promise<readonly Finding[]> => {
      await plan.move(item, 'running');
      const finding = await foundFor(run, item, research, failures);
      await plan.move(item, finding ? 'done' : 'dropped');
      return finding ? [finding] : [];
    },
    atOnce,
  );
  if (cycle === 1 && failures.length === items.length) throw failures[0];
  return found.flat();
}

/**
 * What one researcher finds: a step of the run, as a part of it gives no more than a text. Where the part was done before, it is read there; where it failed, it
 * is tried again when the run is taken up again.
 */
async function foundFor(
  run: Run,
  { id, text: task }: PlanItem,
  { toolsFor: toolsOf, ...research }: Research,
  failures: unknown[],
): Promise<Finding | undefined> {
  const name = `researcher-${id}`;
  const kept = (finding: Finding | null) => run.step(`found/${id}`, async () => finding);
  let found: Finding | undefined;
  try {
    await run.part(name, task, async (part) => {
      found = await researched(part, { ...research, task, toolsFor: (sources) => toolsOf(part, sources) });
      await kept(found);
      return found.text;
    });
    return found ?? (await kept(null)) ?? undefined;
  } catch (error) {
    if (isEnding(error, run)) throw error;
    failures.push(error);
    const { message } = faultOf(error);
    await run.step(`failed/${id}`, async () => {
      run.emit({ event: 'warning', data: { message: `${name} found nothing: ${message}` } });
      run.emit({ event: 'agent.finished', data: { name, text: '' } });
    });
    return undefined;
  }
}
