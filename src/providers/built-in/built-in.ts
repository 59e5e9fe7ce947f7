import type { Clock } from '#kit/async/clock';
import { QueueFull } from '#kit/async/fair-semaphore';
import { orAborted } from '#kit/async/or-aborted';
import { estimatedTokensOf } from '#kit/tokens/estimate';
import type { Tokens } from '#kit/tokens/index';
import type { GenerateCall, Reasoning } from '#core/call';
import type { ForeignPart, ForeignTool, Part } from '#core/conversation';
import { foreignName } from '#dialects/shared/foreign-name';
import { toolsIn } from '#dialects/shared/lone-items';
import { Fault, notHonoured, nothingAllowed } from '#core/fault';
import type { Usage } from '#core/event';
import { absentIn, carried, type FieldSupport, ignored, ignoredIn, noteOn, translated } from '#core/capabilities';
import type { Generate } from '#core/generate';
import type { Context } from '#core/context';
import { estimatedPrompt, promptTokens } from '#core/measure';
import type { Target } from '#core/target';
import { droppedExtra } from '#core/dropped-extra';
import { checkMedia } from './base64.ts';
import { embedder } from './embed.ts';
import { hashOf } from './logprobs.ts';
import { answer, type Answer } from './rules.ts';
import { openSentences, type Sentences } from './sentence/sentence.ts';
import { speak } from './speak.ts';
import { speech, speechName, voices } from './voice/speech.ts';
import { openVoice, type Voice } from './voice/voice.ts';

export interface BuiltInDeps {
  readonly clock: Clock;
  readonly tokens: () => Promise<Tokens>;
  /** The engine for embeddings; absent: the packaged model. */
  readonly sentences?: Sentences;
  /** The engine for speech; absent: the packaged voices. */
  readonly voice?: Voice;
  /** The pace of an answer; absent: as fast as it is read. */
  readonly tokensPerSecond?: number;
}

/** The model that needs no provider: deterministic, offline and obedient by the rules of README.md. */
export function builtIn({ clock, tokens, sentences = openSentences(), voice = openVoice(clock), tokensPerSecond }: BuiltInDeps): {
  target(model: string): Target;
} {
  const generate: Generate = async function* (call, context) {
    const { signal, strict } = context;
    signal.throwIfAborted();
    if (call.sampling.maxTokens === 0) throw nothingAllowed();
    const ignored = unhonoured(call);
    if (strict && ignored.length > 0) throw notHonoured(ignored);
    await checkMedia(call, signal);
    const answers = candidates(call);
    const counter = await orAborted(tokens(), signal);
    const input = inputOf(call, counter, context);
    input.catch(() => {}); // the caller may leave before it settles
    yield [{ type: 'started', model: 'built-in', ignored }];

    const { maxTokens, stop = [], logprobs } = call.sampling;
    const manner = {
      tokens: counter,
      clock,
      signal,
      stop: stop.slice(0, mostStops),
      turns: call.turns.length,
      ...(tokensPerSecond === undefined ? {} : { tokensPerSecond }),
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(logprobs === undefined ? {} : { logprobs }),
    };
    const spoken = { output: 0, thought: 0 };
    yield* speak(answers, manner, spoken);

    const thought = call.reasoning ? { thought: spoken.thought } : {};
    yield [{ type: 'usage', usage: { ...(await orAborted(input, signal)), output: spoken.output, ...thought } }];
  };
  const embed = embedder({ sentences, tokens });
  const speaks = { speak: speech({ voice, tokens }), voices };
  return {
    target: (model) => ({
      name: `built-in/${model}`,
      provider: 'built-in',
      model,
      residency: 'here',
      thoughts: 'all',
      supports: support,
      generate,
      embed,
      ...(model === speechName ? speaks : {}),
    }),
  };
}

/** The tokens of the prompt: exact, unless too many of the caller's prompts are being counted, since that must not fail an answer. */
async function inputOf(call: GenerateCall, counter: Tokens, context: Context): Promise<Pick<Usage, 'input' | 'source'>> {
  try {
    return { input: await promptTokens(call, (texts, asking) => counter.countAll(texts, asking), context), source: 'provider' };
  } catch (error) {
    if (!(error instanceof QueueFull)) throw error;
    return { input: estimatedPrompt(call, estimatedTokensOf), source: 'estimated' };
  }
}

/** The candidates are different wordings of the same answer, as far as there are any; the seed selects the first. */
function candidates(call: GenerateCall): Answer[] {
  const wording = answer(call);
  const first = call.sampling.seed === undefined ? 0 : hashOf(String(call.sampling.seed));
  const count = Math.min(mostCandidates, call.sampling.candidates ?? 1);
  return Array.from({ length: count }, (_, candidate) => {
    const made = wording(first + candidate);
    return { ...made, thoughts: made.thoughts.slice(0, sentencesFor(call.reasoning)) };
  });
}

function sentencesFor(reasoning: Reasoning | undefined): number {
  if (!reasoning || reasoning.effort === 'none') return 0;
  return reasoning.effort === 'minimal' || reasoning.effort === 'low' ? 1 : 2;
}

/** The requested parameters that have no effect here. A value that requests nothing counts as honoured. */
function unhonoured(call: GenerateCall): readonly string[] {
  const { sampling, tools } = call;
  const { temperature, topP, candidates = 1, stop = [] } = sampling;
  const { temperature: _, topP: __, ...others } = sampling;
  const effective = { ...others, ...(temperature && temperature !== 1 ? { temperature } : {}), ...(topP !== undefined && topP < 1 ? { topP } : {}) };
  return [
    ...droppedExtra(call, support.dialect)
      .filter((name) => !call.kept?.includes(name))
      .map((name) => `${name}: ${absentIn('the built-in model')}`),
    ...ignoredIn({ ...call, sampling: effective }, support),
    ...(candidates > mostCandidates ? [noteOn('n', support)] : []),
    ...(stop.length > mostStops ? [noteOn('stop', support)] : []),
    ...new Set(tools.flatMap((tool) => (tool.type === 'foreign' && !tool.namespace ? [unusable(tool)] : []))),
    ...unread(call),
  ];
}

/** Content of users that only its own interface knows. @throws Fault `invalid` where a conversation has nothing else */
function unread({ turns }: GenerateCall): readonly string[] {
  const sent = turns.flatMap(({ role, parts }) => (role === 'system' ? [] : parts));
  if (sent.length > 0 && sent.every(isUnread)) {
    const at = turns.findIndex(({ role, parts }) => role !== 'system' && parts.length > 0);
    const field = `turns[${at}]${turns[at]!.role === 'user' ? '.parts[0]' : ''}`; // what the model is said to have said may be an item without content
    throw new Fault('invalid', `The built-in model can read nothing of ${field}, since it does not know the type ${typesOf(sent).join(', ')}.`, { field });
  }
  const ofUsers = turns.flatMap(({ role, parts }) => (role === 'user' ? parts.filter(isUnread) : []));
  return typesOf(ofUsers).map((type) => `${type}: the built-in model does not know this type of content`);
}

const isUnread = (part: Part): part is ForeignPart => part.type === 'foreign' && !part.step && toolsIn(part.value) === undefined;

const typesOf = (parts: readonly ForeignPart[]): readonly string[] => [...new Set(parts.map(foreignName))].slice(0, mostTypes);

const mostTypes = 20;

const unusable = ({ field }: ForeignTool): string => (field === undefined ? noteOn('tools', support) : `${field}: the built-in model does not search`);

const mostCandidates = 128;
const mostStops = 16;

const chance = 'the output is not sampled';

const support: FieldSupport = {
  dialect: 'built-in',
  fields: {
    temperature: ignored(chance),
    top_p: ignored(chance),
    top_k: ignored(chance),
    max_tokens: carried,
    frequency_penalty: ignored(chance),
    presence_penalty: ignored(chance),
    n: translated(`at most ${mostCandidates} answers are generated`),
    seed: carried,
    stop: translated(`only the first ${mostStops} sequences are used`),
    logprobs: carried,
    logit_bias: ignored(chance),
    tools: translated('only functions and custom tools are called'),
    tool_choice: carried,
    parallel_tool_calls: carried,
    response_format: carried,
    reasoning_effort: translated('reasoning is one or two sentences long'),
  },
};
