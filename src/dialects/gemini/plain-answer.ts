import type { FinishReason, GenerateEvent, Usage } from '#core/event';
import { isObject, textOf } from '#core/json';
import { usageOf } from './usage.ts';

/** Members of a candidate that go to clients as they came; with any other it is decoded. */
const candidateMembers = new Set(['content', 'finishReason', 'index', 'safetyRatings', 'avgLogprobs', 'score']);
const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
]);

/**
 * What a whole answer of text says of itself, for those who forward it unparsed: the same events as `reader` has for it, with `passed` in place of those of its content.
 *
 * @returns undefined for any other answer, which is to be decoded
 */
export function plainAnswer(answer: unknown, _: string, ignored: readonly string[]): readonly GenerateEvent[] | undefined {
  if (!isObject(answer) || answer['error'] !== undefined || answer['promptFeedback'] !== undefined) return undefined;
  const candidate = onlyCandidate(answer);
  const text = candidate && textIn(candidate['content']);
  const reason = candidate && reasons.get(candidate['finishReason']);
  if (!text || !reason || textOf(answer['responseId']) === '' || textOf(answer['modelVersion']) === '') return undefined;
  const usage = usageOf(answer['usageMetadata']);
  if (!usage || usage.output === 0 || !addsUp(answer['usageMetadata'] as Loose, usage)) return undefined;
  return [
    { type: 'started', model: textOf(answer['modelVersion']), ignored },
    { type: 'passed', tokens: 0, text },
    { type: 'finished', candidate: 0, reason, raw: textOf(candidate['finishReason']) },
    { type: 'usage', usage },
  ];
}

type Loose = Readonly<Record<string, unknown>>;

function onlyCandidate({ candidates }: Loose): Loose | undefined {
  if (!Array.isArray(candidates) || candidates.length !== 1) return undefined;
  const [candidate] = candidates as readonly unknown[];
  if (!isObject(candidate)) return undefined;
  const { index = 0, safetyRatings = [] } = candidate;
  if (index !== 0 || !Array.isArray(safetyRatings)) return undefined;
  for (const name in candidate) if (!candidateMembers.has(name)) return undefined;
  return candidate;
}

/** @returns undefined where there is anything else than text */
function textIn(content: unknown): string | undefined {
  if (!isObject(content) || content['role'] !== 'model') return undefined;
  const { parts } = content;
  if (!Array.isArray(parts)) return undefined;
  let said = '';
  for (const part of parts as readonly unknown[]) {
    if (!isObject(part) || typeof part['text'] !== 'string') return undefined;
    for (const name in part) if (name !== 'text') return undefined;
    said += part['text'];
  }
  return said;
}

/** Are the counts those that are booked? Clients rely on all of them. */
function addsUp(counted: Loose, { input, output, thought = 0, cached }: Usage): boolean {
  const { candidatesTokenCount, totalTokenCount, thoughtsTokenCount = 0, cachedContentTokenCount } = counted;
  const areOutput = candidatesTokenCount === output - thought && thoughtsTokenCount === thought;
  return areOutput && totalTokenCount === input + output && cachedContentTokenCount === cached;
}

/** How nearly all servers begin an answer. */
const opening = /^\s{0,8}\{\s{0,16}"candidates"\s{0,8}:\s{0,8}\[\s{0,16}\{/;
const openingBytes = 100;

/**
 * A plain answer with what clients rely on and the platform leaves out.
 *
 * @returns undefined where it does not begin as answers do
 */
export function completed(bytes: Uint8Array, answer: unknown): Uint8Array | undefined {
  const [candidate] = (answer as { readonly candidates: readonly [Loose] }).candidates;
  let lacking = '';
  if (candidate['index'] === undefined) lacking += '"index":0,';
  if (candidate['safetyRatings'] === undefined) lacking += '"safetyRatings":[],';
  if (lacking === '') return bytes;
  const end = opening.exec(Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, openingBytes)).toString('latin1'))?.[0].length;
  return end === undefined ? undefined : Buffer.concat([bytes.subarray(0, end), Buffer.from(lacking), bytes.subarray(end)]);
}
