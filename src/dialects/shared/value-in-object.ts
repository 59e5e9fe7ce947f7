import { checkForeign } from '#kit/json/foreign';
import { parseAsWritten, asWritten } from '#kit/json/numbers';
import { withoutFence } from '#kit/text/without-fence';
import type { GenerateCall, SchemaOutput } from '#core/call';
import { isCut, type Events, type GenerateEvent } from '#core/event';
import { isObject, membersWhere, type Json, type JsonObject } from '#core/json';
import { withoutPassthrough } from '#core/passthrough';
import type { Fitted } from './fitting.ts';
import { UnseenTokens } from './unseen-tokens.ts';

/** The member of the object that stands around the value. */
const member = 'answer';

/**
 * For wires and models that accept only the schemas of objects, or have no answers of one bare word: the provider is asked for an object around the value, and
 * the client gets the value.
 * @returns undefined where there is no schema, or one that cannot be put into another
 */
export function valueInObject(call: GenerateCall): Fitted | undefined {
  const { output, sampling } = call;
  const schema = output.type === 'schema' ? schemaAround(output.schema) : undefined;
  if (output.type !== 'schema' || !schema) return undefined;
  const { bare: _, ...others } = output;
  const { logprobs, ...rest } = sampling;
  const ignored = logprobs === undefined ? {} : { ignored: ['logprobs: the provider answers with JSON around the value, whose tokens are others.'] };
  const taking = new Values(output);
  return { call: { ...withoutPassthrough(call), output: { ...others, schema }, sampling: rest }, ...ignored, restore: (events) => taking.take(events) };
}

/** The same for answers of one bare word alone. */
export const wordInObject = (call: GenerateCall): Fitted | undefined => (call.output.type === 'schema' && call.output.bare ? valueInObject(call) : undefined);

const rootOnly = ['$defs', 'definitions'] as const;

/** References lead from the root: those to definitions still do, others do not. */
function schemaAround(schema: JsonObject): JsonObject | undefined {
  if (/"\$ref":"#(?!\/(?:\$defs|definitions)\/)/.test(JSON.stringify(schema))) return undefined;
  const inner = membersWhere(schema, (name) => !rootOnly.some((one) => one === name) && name !== '$schema');
  const definitions = Object.fromEntries(rootOnly.flatMap((name) => (schema[name] === undefined ? [] : [[name, schema[name]]])));
  return { type: 'object', properties: { [member]: inner }, required: [member], additionalProperties: false, ...definitions };
}

/** Characters of an answer; a longer one is left as it is. */
const longest = 1_048_576;

/** Collects the text of each candidate of one answer, and emits its value at the end. Until then its tokens alone are reported. */
class Values {
  readonly #output: SchemaOutput;
  readonly #held = new Map<number, Held>();
  readonly #released = new Set<number>();

  constructor(output: SchemaOutput) {
    this.#output = output;
  }

  take(events: Events): Events {
    return events.flatMap((event) => ('candidate' in event ? this.#one(event) : [event]));
  }

  #one(event: Extract<GenerateEvent, { candidate: number }>): readonly GenerateEvent[] {
    const { candidate } = event;
    if (event.type === 'thought' || this.#released.has(candidate)) return [event];
    if (event.type !== 'text') {
      const value = event.type === 'finished' && isCut(event.reason) ? begunIn : valueIn;
      return [...this.#release(candidate, (text) => value(text, this.#output)), event];
    }
    let held = this.#held.get(candidate);
    if (!held) this.#held.set(candidate, (held = { text: '', unseen: new UnseenTokens() }));
    held.text += event.text;
    const unseen = held.unseen.kept(event.text);
    if (held.text.length <= longest) return unseen;
    this.#released.add(candidate);
    return [...unseen, ...this.#release(candidate, (one) => one)];
  }

  #release(candidate: number, value: (text: string) => string): readonly GenerateEvent[] {
    const held = this.#held.get(candidate);
    this.#held.delete(candidate);
    if (!held || held.text === '') return [];
    const text = value(held.text);
    return [...held.unseen.released(), ...(text === '' ? [] : [{ type: 'text' as const, candidate, text }])];
  }
}

interface Held {
  text: string;
  readonly unseen: UnseenTokens;
}

/** The value within an answer; a text without one stays as it is. */
function valueIn(text: string, { bare }: SchemaOutput): string {
  const answer = parsed(withoutFence(text) ?? text);
  if (!isObject(answer) || !Object.hasOwn(answer, member)) return bare && typeof answer === 'string' ? answer : text;
  const value = answer[member];
  return bare && typeof value === 'string' ? value : JSON.stringify((asWritten(answer) as Readonly<Record<string, Json>>)[member]);
}

/** What there is of the value in an answer that broke off. Of a bare word only all of it is worth anything. */
function begunIn(text: string, output: SchemaOutput): string {
  const value = valueIn(text, output);
  if (value !== text) return value;
  const begun = text.replace(/^\s*(?:```(?:json)?\s*)?/, '');
  const [opening] = /^\{\s*"answer"\s*:\s*/.exec(begun) ?? [];
  if (opening === undefined) return `{"${member}":`.startsWith(begun.replaceAll(/\s/g, '')) ? '' : text;
  const rest = begun.slice(opening.length);
  if (!output.bare) return rest;
  const word = parsed(rest);
  return typeof word === 'string' ? word : '';
}

function parsed(text: string): unknown {
  try {
    checkForeign(text);
    return parseAsWritten(text);
  } catch {
    return undefined;
  }
}
