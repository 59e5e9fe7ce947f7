import { randomUUID } from 'node:crypto';
import { type GenerateCall, plainCall } from '#core/call';
import type { Context } from '#core/context';
import type { TakenCalls, Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { promptSize, promptTokens } from '#core/measure';
import { placesOf, type Model } from '#core/target';
import { Conversation } from '#http/noun-route';
import type { UploadedFile } from '#http/uploads';
import { systemTurn } from '../system-turn.ts';
import { attachedOf } from './attached.ts';
import { warnOfUnusedFields, lookedUpIn, modelIn, modelOf, personaIn, type Asked } from './choices.ts';
import { completionOf, emptyCompletion } from './completion.ts';
import { deepQuery } from './deep.ts';
import type { QueryDeps } from './deps.ts';
import type { QueryFields } from './fields.ts';
import { datasetsSaid, isLookedUp, lookedUp, type LookedUp } from './looked-up.ts';
import { instructionsFor, noMaterial, withMaterial, type Material } from './material.ts';
import { mcpFieldsIn, takenCalls, wantedTool, withKeptCalls } from './mcp-tools.ts';
import { preparing } from './preparing.ts';
import { dateIn, timestamp } from './today.ts';
import { questionOf, toolChoiceOf, toolsOf, turnsOf } from './turns.ts';

/** A question of a user, as the call that answers it. @throws Fault `invalid` naming the field; what is looked up for it is refused when the call is made */
export function query(deps: QueryDeps, question: Asked): Conversation {
  const { caller, fields, files, asked, whole: wholeMessage, output = { type: 'text' }, streams } = question;
  if (fields.mode === 'deep_agent') return deepQuery(deps, question);
  let turns = turnsOf(fields.message);
  const tools = toolsOf(fields.tools);
  const mcp = mcpFieldsIn(fields, caller);
  const toolChoice = toolChoiceOf(fields.tool_choice, tools, { hasServers: mcp.tools.length + mcp.approved.length > 0 });
  const where = lookedUpIn(fields);
  const persona = personaIn(fields.persona);
  const today = dateIn(fields.timezone ?? undefined, deps.clock);
  const uuid = randomUUID();
  const prefix = deps.leadingNewlines() ? '\n\n' : '';
  let material: Material = noMaterial;
  let taken: TakenCalls | undefined;

  const prepared = async (call: GenerateCall, context: Context): Promise<GenerateCall> => {
    warnOfUnusedFields(fields, context);
    const model = modelOf(call.model, deps.models(context.caller), context);
    const prompt = await deps.promptOf(context.caller, persona);
    if (wholeMessage || files.length > 0 || isLookedUp(where)) {
      await deps.affords(call, context);
      await deps.enters(context);
    }
    if (wholeMessage) turns = turnsOf(await wholeMessage());
    material = await materialFor({ turns, files, where, model }, deps, context);
    const own = typeof fields.system_prompt === 'string' ? fields.system_prompt : prompt;
    const dated = own === prompt || fields.timezone ? [today] : [];
    const system = [...systemTurn(own), ...systemTurn(...dated, ...instructionsFor(material))];
    const ready = { ...call, turns: [...system, ...withMaterial(turns, material)], ...coolest(fields, model, context) };
    await refuseLong(ready, model, deps, context);
    taken = mcp.approved.length > 0 ? await takenCalls(mcp, turns, deps.waiting, context) : undefined;
    return { ...ready, tools: [...ready.tools, ...wantedTool(mcp, taken, context)] };
  };

  return new Conversation({
    call: plainCall({
      dialect: 'native',
      model: modelIn(fields.model, deps.defaults().chat, deps.models(caller)),
      turns,
      ...(asked === undefined ? {} : { asked }),
      tools,
      ...(toolChoice ? { toolChoice } : {}),
      output,
      sampling: typeof fields.temperature === 'number' ? { temperature: fields.temperature } : {},
      ...(fields.reasoning_effort ? { reasoning: { effort: fields.reasoning_effort } } : {}),
    }),
    generate: preparing(prepared, deps.generate),
    streams: streams ?? fields.streaming ?? undefined,
    app: fields.app_name ?? undefined,
    before: prefix,
    soFar: (text) => emptyCompletion(uuid, prefix + text),
    async whole(result, context) {
      const at = timestamp(deps.clock);
      const completion = completionOf(await withKeptCalls(result, turns, deps.waiting, context), context, {
        uuid,
        persona,
        datasets: datasetsSaid(where),
        material,
        wantsUsage: fields.usage === true,
        prefix,
        at,
      });
      const { requestId } = context;
      const model = result.started.model;
      await deps.keep({ uuid, userId: caller.userId, requestId, model, message: questionOf(turns), answer: completion.message, passages: material.passages });
      // what stays where that fails is gone in an hour
      if (taken) await deps.waiting.over(caller.userId, taken.id).catch(() => {});
      return completion;
    },
  });
}

/** Tokens of a model of which nothing is known. */
const usualContext = 32_768;

interface Needed {
  readonly turns: readonly Turn[];
  readonly files: readonly UploadedFile[];
  readonly where: LookedUp;
  readonly model: Model | undefined;
}

/** What goes into the prompt: files take a quarter of the context, what is looked up half of it. */
export async function materialFor({ turns, files, where, model }: Needed, deps: QueryDeps, context: Context): Promise<Material> {
  const size = model?.limits.context ?? usualContext;
  const sees = model?.abilities?.includes('vision') === true;
  const attached =
    files.length > 0 ? await attachedOf(files, { question: questionOf(turns), room: Math.floor(size / 4), sees }, deps, context) : { files: [], media: [] };
  return { ...attached, ...(await lookedUp(turns, where, Math.floor(size / 2), deps, context)) };
}

/** Temperature 0 where the client names none, and where every target takes it: nobody is to be told of a field that was not sent. */
function coolest(
  { temperature, reasoning_effort: effort }: QueryFields,
  model: Model | undefined,
  { strict }: Context,
): Pick<GenerateCall, 'sampling'> | undefined {
  if (typeof temperature === 'number' || effort || strict || !model) return undefined;
  const takesIt = placesOf(model.targets).every(({ supports }) => supports && supports.fields.temperature.fate !== 'ignored');
  return takesIt ? { sampling: { temperature: 0 } } : undefined;
}

/** @throws Fault `invalid` for a prompt that the model cannot read, where that is known */
export async function refuseLong(call: GenerateCall, model: Model | undefined, { countTokens }: QueryDeps, context: Context): Promise<void> {
  const most = model?.limits.context;
  if (most === undefined || model?.larger !== undefined || context.targets) return;
  const { fixed, bytes } = promptSize(call);
  if (fixed + bytes <= most || (await promptTokens(call, countTokens, context)) <= most) return;
  throw new Fault('invalid', `message is longer than the context of the model, which is ${most} tokens.`, { field: 'message', reason: 'context-length' });
}
