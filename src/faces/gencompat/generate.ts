import { fieldIn, spelled } from '#dialects/gemini/client-fields';
import { arrayFraming, eventFraming } from '#dialects/gemini/framing';
import { GenerateRequest, GenerationConfig } from '#dialects/gemini/wire';
import { gemini } from '#dialects/gemini/index';
import { encodeUsage } from '#dialects/gemini/usage';
import { cutCallsIn } from '#dialects/shared/arguments';
import { answerId } from '../answer-id.ts';
import { answerCall, contextOf, unlabelled, type GeneratingDeps } from '../answer.ts';
import { membersInBothSpellings, refuseOtherCase } from '../other-case.ts';
import type { Asked } from '#http/route';
import { isWebSearch } from '#core/conversation';
import { warn } from '#core/ignoring';
import { isObject } from '#core/json';
import { Fault } from '#core/fault';

const members = membersInBothSpellings(GenerateRequest.properties);
const configMembers = membersInBothSpellings(GenerationConfig.properties);
const configNames = ['generationConfig', 'generation_config'];

/** `generateContent` and `streamGenerateContent`. @param namesFor the names of the models to ask, in turn, for a name that a client writes; throws a Fault */
export async function generateContent(
  deps: GeneratingDeps,
  asked: Asked,
  { model, stream }: { readonly model: string; readonly stream: boolean },
  namesFor: (model: string) => readonly [string, ...string[]],
): Promise<void> {
  const { exchange, json } = asked;
  const { app, body } = unlabelled(json, members);
  if (isObject(body)) for (const name of configNames) if (isObject(body[name])) refuseOtherCase(body[name], configMembers, `${name}.`);
  const framing = wantsEvents(exchange.url) ? eventFraming() : arrayFraming();
  const call = gemini.decodeRequest(body, { model, stream });
  const context = contextOf(asked, 'gencompat', app, []);
  const answer = { id: answerId('', exchange), framing, hidesThoughts: call.reasoning?.hidden ?? !call.reasoning };
  await answerCall(deps, exchange, {
    call,
    context: { ...context, tier: context.targets ? namesIfKnown(model, namesFor) : namesFor(model) },
    ...(stream || call.tools.some(isWebSearch) || call.output.type !== 'text'
      ? {}
      : { passthrough: { dialect: gemini.name, request: { written: undefined }, usageWanted: true } }),
    words: {
      whole(result) {
        warn(cutCallsIn(result.candidates), context.progress);
        return gemini.encodeResult(result, answer);
      },
      frames: () => gemini.encoder(answer),
      framing,
      usage: encodeUsage,
      usageMember: 'usageMetadata',
      fault: (fault) => framing.fault(fault),
      fieldOf: (field) => fieldIn(body, field, call),
      memberOf: (name) => spelled(body, name),
    },
  });
}

/** Where the client chose the models itself (`x-dragoman-targets`), the address may name one that does not exist, as a request of the other interfaces may. */
function namesIfKnown(model: string, namesFor: (model: string) => readonly [string, ...string[]]): readonly [string, ...string[]] | undefined {
  try {
    return namesFor(model);
  } catch (error) {
    if (error instanceof Fault && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** `?alt=sse` */
function wantsEvents(url: string): boolean {
  const at = url.indexOf('?');
  return at >= 0 && new URLSearchParams(url.slice(at)).get('alt')?.toLowerCase() === 'sse';
}
