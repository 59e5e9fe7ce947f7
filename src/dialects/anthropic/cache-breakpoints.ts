import { isObject, type Json, type JsonObject } from '#core/json';

/** The wire accepts no more cache breakpoints, that of the request as a whole included. https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
const mostBreakpoints = 4;

/**
 * A request with at most four cache breakpoints: clients of other wires may set more, and their own providers accept them (router-for-me/CLIProxyAPI#4795). The last
 * one of the tools, of the system text and of the messages is kept, and the last ones before those.
 */
export function withFewBreakpoints(body: JsonObject, ignored: Set<string>): JsonObject {
  const groups = [body['tools'], body['system'], body['messages']].map((group) => blocksWithBreakpoint(group ?? null));
  const most = mostBreakpoints - (body['cache_control'] === undefined ? 0 : 1);
  const all = groups.flat();
  if (all.length <= most) return body;
  ignored.add(`cache_control: the provider accepts ${mostBreakpoints} cache breakpoints; the others were left out.`);
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

/** The blocks with a breakpoint, in their order; what a client calls `cache_control` in a schema or in arguments is none. */
function blocksWithBreakpoint(value: Json, found: JsonObject[] = []): readonly JsonObject[] {
  if (Array.isArray(value)) for (const one of value as readonly Json[]) blocksWithBreakpoint(one, found);
  else if (isObject(value)) {
    blocksWithBreakpoint(value['content'] ?? null, found);
    if (value['cache_control'] !== undefined) found.push(value);
  }
  return found;
}

/** The same value where it loses no breakpoint: large requests are walked in one piece. */
function withoutOthers(value: Json, kept: ReadonlySet<JsonObject>): Json {
  if (Array.isArray(value)) {
    const all = value as readonly Json[];
    let left: Json[] | undefined;
    for (let at = 0; at < all.length; at++) {
      const one = withoutOthers(all[at]!, kept);
      if (one !== all[at]) (left ??= [...all])[at] = one;
    }
    return left ?? all;
  }
  if (!isObject(value)) return value;
  const { content: given = null } = value;
  const content = withoutOthers(given, kept);
  const own = content === given ? value : { ...value, content };
  if (value['cache_control'] === undefined || kept.has(value)) return own;
  const { cache_control: _, ...others } = own;
  return others;
}
