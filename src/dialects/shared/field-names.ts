import type { GenerateCall } from '#core/call';
import { isSent, type Field } from '#core/capabilities';
import { own, type Json } from '#core/json';
import { isItem } from './lone-items.ts';

/**
 * What a wire calls the fields of a call, for the messages of refusals: a provider names a field in its own words, and the client reads its own name for it.
 * Between the two are the names of the call: those of `Field`, `turns[0].parts[1]`, `output.schema` and `tools[0].parameters`.
 */
export interface FieldNames {
  readonly dialect: string;
  /** The member with the conversation, and that of its elements with their content. */
  readonly turns: string;
  readonly parts: string;
  /** The member with the system turn at the front; absent: it is part of the conversation. */
  readonly system?: string;
  readonly schema: string;
  /** Where the name of a function is in a tool, and its parameters. */
  readonly name: string;
  readonly parameters: string;
  /** The paths of each field; a client is shown the first one. */
  readonly fields: Readonly<Partial<Record<Field, readonly [string, ...string[]]>>>;
}

/** The call's own name for a path of this wire. `undefined`: the call has no such field, or its client did not use it. @param body of the request, for its lengths */
export function callField(names: FieldNames, path: string, call: GenerateCall, body: () => Readonly<Record<string, Json>>): string | undefined {
  const place = normalised(path);
  const [, root = ''] = /^([A-Za-z_]{1,60})/.exec(place) ?? [];
  if (root === names.turns) return turnField(names, place, call, body);
  if (root === names.system) return call.turns[0]?.role === 'system' ? 'turns[0]' : undefined;
  if (root === 'tools') return call.tools.length === 0 ? undefined : toolField(place, call, body);
  if (call.output.type === 'schema' && place.startsWith(names.schema)) return 'output.schema';
  const known = Object.entries(names.fields).flatMap(([field, paths]) => paths.map((one) => [field as Field, one] as const));
  const [field] = known.filter(([, one]) => isWithin(place, one)).toSorted((a, b) => b[1].length - a[1].length)[0] ?? [];
  if (field !== undefined) return isSent(field, call) ? field : undefined;
  const [outer] = known.find(([one, inner]) => isWithin(inner, place) && isSent(one, call)) ?? []; // the provider names the object around it
  return outer;
}

const isWithin = (place: string, outer: string) => place.startsWith(outer) && !/^\w/.test(place.slice(outer.length));

/** `messages.0.content` as `messages[0].content`. */
const normalised = (path: string): string => path.replaceAll(/\.(\d{1,9})(?=\.|\[|$)/g, '[$1]');

/** The turn and the part at a place of the conversation, where wire and call have as many. */
function turnField({ turns, parts }: FieldNames, place: string, call: GenerateCall, body: () => Readonly<Record<string, Json>>): string {
  const [, number, , part] = /^\w+\[(\d{1,9})\](?:\.(\w{1,40})(?:\[(\d{1,9})\])?)?/.exec(place) ?? [];
  const listed = body()[turns];
  if (number === undefined || !Array.isArray(listed)) return 'turns';
  const system = call.turns.findIndex(({ role }) => role !== 'system');
  const at = Number(number) + (listed.length === call.turns.length ? 0 : system);
  const turn = call.turns[at];
  if (!turn || at + listed.length - Number(number) !== call.turns.length) return 'turns';
  if (!place.includes(`.${parts}`)) return `turns[${at}]`;
  const inner = turn.parts.length === 1 ? 0 : part === undefined ? undefined : Number(part);
  return inner === undefined || inner >= turn.parts.length ? `turns[${at}]` : `turns[${at}].parts[${inner}]`;
}

function toolField(place: string, call: GenerateCall, body: () => Readonly<Record<string, Json>>): string {
  const [, outer, inner] = /^tools\[(\d{1,9})\](?:\.functionDeclarations\[(\d{1,9})\])?/.exec(place) ?? [];
  const listed = body()['tools'];
  const at = Number(inner ?? outer);
  const isSame = inner === undefined ? Array.isArray(listed) && listed.length === call.tools.length : call.tools.every(({ type }) => type === 'function');
  if (outer === undefined || !isSame || at >= call.tools.length) return 'tools';
  if (/\.name\b/.test(place)) return `tools[${at}].name`;
  return `tools[${at}]${/parameters|input_schema/i.test(place) ? '.parameters' : ''}`;
}

/**
 * The client's own name for a field of its call; other names stay as they are.
 * @param before how many turns come before those of the client's conversation; null where its elements are no turns
 */
export function clientField(names: FieldNames, field: string, call: GenerateCall, before: number | null = systemTurns(names, call)): string {
  if (field === 'output.schema') return names.schema;
  const [, number, part] = /^turns(?:\[(\d+)\](?:\.parts\[(\d+)\])?)?$/.exec(field) ?? [];
  if (field === 'turns' || number !== undefined) return turnName(names, call, before, number, part);
  const [, tool, member] = /^(tools\[\d+\])\.(name|parameters)$/.exec(field) ?? [];
  if (tool !== undefined) return `${tool}.${member === 'name' ? names.name : names.parameters}`;
  const paths = Object.hasOwn(names.fields, field) ? names.fields[field as Field] : undefined;
  if (!paths) return field;
  const notes = own(call.extra, names.dialect);
  return paths.find((path) => Object.hasOwn(notes, `.${path.split('.').at(-1)}`)) ?? paths.find((path) => path === field) ?? paths[0];
}

function turnName({ turns, parts, system }: FieldNames, call: GenerateCall, before: number | null, number: string | undefined, part: string | undefined) {
  if (number === undefined || before === null) return turns;
  const at = Number(number) - before;
  if (at < 0) return system ?? turns;
  const turn = call.turns[Number(number)];
  if (part === undefined || !turn || isItem(turn)) return `${turns}[${at}]`;
  const isOnly = turn.parts.length === 1 && parts !== 'parts';
  return `${turns}[${at}].${parts}${isOnly ? '' : `[${part}]`}`;
}

const systemTurns = ({ system, dialect }: FieldNames, { turns: [first] }: GenerateCall): number =>
  system !== undefined && first?.role === 'system' && own(first.extra, dialect)['.message'] === undefined ? 1 : 0;
