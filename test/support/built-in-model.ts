import { Permits } from '#core/permits';
import { systemClock } from '#kit/async/clock';
import { openTokens } from '#kit/tokens/index';
import type { GenerateCall } from '#core/call';
import type { Part, Role, Tool, Turn } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import { fold, type GenerateResult } from '#core/fold';
import type { TargetContext } from '#core/context';
import type { JsonObject } from '#core/json';
import fc from 'fast-check';
import { builtIn } from '#providers/built-in/built-in';

/** The built-in model, which answers the calls below. */
const target = builtIn({ clock: systemClock, tokens: openTokens }).target('built-in');

export function turn(role: Role, ...parts: (string | Part)[]): Turn {
  return { role, parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)) };
}

/** A single message, or a whole conversation. */
export function callOf(input: string | readonly Turn[], over: Partial<GenerateCall> = {}): GenerateCall {
  const turns = typeof input === 'string' ? [turn('user', input)] : input;
  return { model: 'built-in', turns, tools: [], output: { type: 'text' }, sampling: {}, stream: true, extra: {}, ...over };
}

export function contextOf(over: Partial<TargetContext> = {}): TargetContext {
  const caller = { userId: 1, email: 'a@example.com', role: 'user', plan: 'free', teamIds: [], keyId: 1, keyName: 'k' } as const;
  return {
    requestId: 'req_1',
    step: 0,
    caller,
    face: 'test',
    app: 'test',
    signal: new AbortController().signal,
    strict: false,
    headers: {},
    permits: new Permits(),
    progress: { attempts: [] },
    patience: { head: 60, firstByte: 300, idle: 120 },
    ...over,
  };
}

export async function eventsOf(call: GenerateCall, context = contextOf()): Promise<GenerateEvent[]> {
  return (await Array.fromAsync(target.generate(call, context))).flat();
}

export async function ask(input: string | readonly Turn[], over: Partial<GenerateCall> = {}): Promise<GenerateResult> {
  return fold(await eventsOf(callOf(input, over)));
}

/** The text of the first candidate. */
export async function textOf(input: string | readonly Turn[], over: Partial<GenerateCall> = {}): Promise<string> {
  return (await ask(input, over)).candidates[0]!.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** The tools that the first candidate calls, with their arguments. */
export async function usesOf(input: string | readonly Turn[], over: Partial<GenerateCall>): Promise<[string, unknown][]> {
  const { parts } = (await ask(input, over)).candidates[0]!;
  return parts.flatMap((part): [string, unknown][] => (part.type === 'tool-call' ? [[part.name, part.custom ? part.json : JSON.parse(part.json)]] : []));
}

export function tool(name: string, properties: JsonObject = {}, required = Object.keys(properties)): Tool {
  return { type: 'function', name, parameters: { type: 'object', properties, required, additionalProperties: false } };
}

/** Made-up words, which cannot be in an answer by accident. */
export const word = fc
  .array(fc.constantFrom('ba', 'ko', 'zu', 'mi', 're', 'lo', 'ta', 'fe', 'gu', 'ni', 'vo', 'pa', 'xe', 'qua', 'dri'), { minLength: 3, maxLength: 4 })
  .map((syllables) => syllables.join(''));
export const words = fc.uniqueArray(word, { minLength: 1, maxLength: 6 }).map((all) => all.join(' '));
export const distinct = (count: number) =>
  fc.uniqueArray(word, { minLength: count, maxLength: count, comparator: (one, other) => one.includes(other) || other.includes(one) });
export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Runs a property for random words. */
export async function holds<Value>(values: fc.Arbitrary<Value>, check: (value: Value) => unknown, numRuns = 40): Promise<void> {
  await fc.assert(
    fc.asyncProperty(values, async (value) => {
      await check(value);
    }),
    { numRuns },
  );
}
