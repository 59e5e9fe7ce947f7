import { isObject, type Json, type JsonObject } from '#core/json';

/** The wire accepts no more marks of cached prefixes, that of the request as a whole included. https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
const mostMarks = 4;

/**
 * A request with at most four marks: clients of other wires may set more, and their own providers accept them (router-for-me/CLIProxyAPI#4795). The last marks of the
 * tools, of the system text and of the messages are kept, and the last ones before those.
 */
export function withFewMarks(body: JsonObject, ignored: Set<string>): JsonObject {
  const groups = [body['tools'], body['system'], body['messages']].map((group) => markedIn(group ?? null));
  const most = mostMarks - (body['cache_control'] === undefined ? 0 : 1);
  const all = groups.flat();
  if (all.length <= most) return body;
  ignored.add(`cache_control: the provider accepts ${mostMarks} cache breakpoints; the others were left out.`);
  const lasts = groups.flatMap((group) => group.slice(-1)).slice(-most);
  const others = all.filter((one) => !lasts.includes(one));
  const kept = new Set([...lasts, ...others.slice(others.length - (most - lasts.length))]);
  const { tools, system, messages } = body;
  return {
    ...body,
    ...(tools === undefined ? {} : { tools: withoutOthers(tools, kept) }),
    ...(system === undefined ? {} : { system: withoutOthers(system, kept) }),
    messages: withoutOthers(messages!, kept),
  };
}

/** The blocks with a mark, in their order; what a client calls `cache_control` in a schema or in arguments is none. */
function markedIn(value: Json): readonly JsonObject[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(markedIn);
  if (!isObject(value)) return [];
  return [...markedIn(value['content'] ?? null), ...(value['cache_control'] === undefined ? [] : [value])];
}

function withoutOthers(value: Json, kept: ReadonlySet<JsonObject>): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((one) => withoutOthers(one, kept));
  if (!isObject(value)) return value;
  const { cache_control: mark, ...others } = value;
  const { content } = others;
  return {
    ...others,
    ...(content === undefined ? {} : { content: withoutOthers(content, kept) }),
    ...(mark !== undefined && kept.has(value) ? { cache_control: mark } : {}),
  };
}
