import { isRecord } from './definitions.ts';
import { smallMembers } from './plain-message.ts';

/** Values in members that the library checks one by one: a mistake in each of them takes it a tenth of a millisecond. */
const mostValues = 200;

/** Who the client is and what it can do is not asked for. */
const unread = { capabilities: {}, clientInfo: { name: 'client', version: '1' } };

/** A message of a client as the library is shown it, without what nobody reads: hundreds of thousands of wrong values would hold the event loop for seconds. */
export function plainRequest(json: unknown): unknown {
  if (!isRecord(json)) return json;
  const { method, params, result, error } = json;
  if (isRecord(result)) return { ...json, result: {} };
  if (isRecord(error)) return { ...json, error: smallMembers(error, mostValues) };
  return isRecord(params) ? { ...json, params: plainParams(method, params) } : json;
}

function plainParams(method: unknown, { arguments: args, _meta: meta, ...others }: Readonly<Record<string, unknown>>): object {
  return {
    ...smallMembers(others, mostValues),
    ...(method === 'initialize' ? unread : {}),
    ...(method === 'tools/call' && args !== undefined ? { arguments: args } : {}), // those are not looked into
    ...(meta === undefined ? {} : { _meta: isRecord(meta) ? smallMembers(meta, mostValues) : null }),
  };
}
