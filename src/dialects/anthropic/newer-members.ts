import { isEmpty, isObject, type Json, type JsonObject } from '#core/json';

/** Members that come with beta features: Claude Code sends them to every server, and servers without the feature refuse them. */
const members = [
  'context_management',
  'output_config.effort',
  'cache_control.scope',
  'cache_control.ttl',
  'tools.eager_input_streaming',
  'tools.input_examples',
] as const;

export type NewerMember = (typeof members)[number];

/** `system.0.cache_control.ephemeral.scope: Extra inputs are not permitted`, `tools.0.custom.eager_input_streaming: …` */
export function newerMemberIn(said: string): NewerMember | undefined {
  const place = /^([a-z_]{1,40}(?:\.\w{1,40}){0,9}): extra inputs are not permitted/i.exec(said)?.[1] ?? '';
  const inside = /(?:^|\.)cache_control(?:\.ephemeral)?(\.\w{1,40})$/.exec(place)?.[1];
  const ofTool = /^tools\.\d{1,9}(?:\.\w{1,40})?(\.\w{1,40})$/.exec(place)?.[1];
  const name =
    inside !== undefined ? `cache_control${inside}` : ofTool !== undefined ? `tools${ofTool}` : place === 'output_config' ? `${place}.effort` : place;
  return members.find((one) => one === name);
}

/** The body without these members; what it had of them is named. */
export function withoutMembers(body: JsonObject, refused: readonly NewerMember[], ignored: Set<string>): JsonObject {
  let left = body;
  for (const name of refused) {
    const next = without(left, name);
    if (next !== left) ignored.add(`${name}: the provider does not know it.`);
    left = next;
  }
  return left;
}

/** @returns the same body where it has no such member */
function without(body: JsonObject, name: NewerMember): JsonObject {
  const { tools } = body;
  switch (name) {
    case 'context_management':
      return lacking(body, name);
    case 'output_config.effort':
      return emptied(body, 'output_config', 'effort');
    case 'cache_control.scope':
      return withoutInBreakpoints(body, 'scope');
    case 'cache_control.ttl':
      return withoutInBreakpoints(body, 'ttl');
    case 'tools.eager_input_streaming':
      return replaced(
        body,
        'tools',
        changed(tools, (tool) => lacking(tool, 'eager_input_streaming')),
      );
    case 'tools.input_examples':
      return replaced(
        body,
        'tools',
        changed(tools, (tool) => lacking(tool, 'input_examples')),
      );
    default:
      return name satisfies never;
  }
}

/** Of the cache breakpoints of the request, its tools, system text and messages; what a client calls `cache_control` in a schema or in arguments is none. */
function withoutInBreakpoints(body: JsonObject, name: string): JsonObject {
  const bare = (block: JsonObject): JsonObject => replaced(emptied(block, 'cache_control', name), 'content', changed(block['content'], bare));
  let left = emptied(body, 'cache_control', name);
  for (const list of ['tools', 'system', 'messages']) left = replaced(left, list, changed(left[list], bare));
  return left;
}

const lacking = (object: JsonObject, name: string): JsonObject => {
  const { [name]: found, ...others } = object;
  return found === undefined ? object : others;
};

/** Without a member of a member, which goes as well where it would be empty. */
function emptied(object: JsonObject, outer: string, name: string): JsonObject {
  const { [outer]: found, ...others } = object;
  if (!isObject(found) || found[name] === undefined) return object;
  const left = lacking(found, name);
  return isEmpty(left) ? others : { ...object, [outer]: left };
}

const replaced = (object: JsonObject, name: string, value: Json | undefined): JsonObject =>
  value === undefined || value === object[name] ? object : { ...object, [name]: value };

/** The objects of a list, changed; the same list where none is. */
function changed(list: Json | undefined, change: (one: JsonObject) => JsonObject): Json | undefined {
  if (!Array.isArray(list)) return list;
  const all: readonly Json[] = list;
  const next = all.map((one) => (isObject(one) ? change(one) : one));
  return next.some((one, at) => one !== all[at]) ? next : all;
}
