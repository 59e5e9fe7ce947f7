import type { Person } from './visitors.ts';

/** A server-sent event. */
export interface SentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** What a user is told of runs by the server at this address. */
export function runs({ key }: Pick<Person, 'key'>, url: string) {
  const execute = (body: object, accept: string) =>
    fetch(`${url}/server/execute-agent`, {
      method: 'POST',
      headers: { 'x-access-tokens': key, 'content-type': 'application/json', accept },
      body: JSON.stringify(body),
    });
  const followed = (run: string, after?: number, signal?: AbortSignal) =>
    fetch(`${url}/server/mine/runs/${run}/events`, {
      headers: { 'x-access-tokens': key, ...(after === undefined ? {} : { 'last-event-id': String(after) }) },
      ...(signal ? { signal } : {}),
    });
  return {
    /** Of a run that ends, all of them. */
    events: async (run: string, after?: number) => eventsIn(await (await followed(run, after)).text()),
    followed,
    async executed(body: object) {
      const answer = await execute(body, '*/*');
      return { contentType: answer.headers.get('content-type') ?? '', events: eventsIn(await answer.text()) };
    },
    plain: async (body: object) =>
      (await (await execute(body, 'text/plain')).text()).split('@|@sep@|@').map((one) => JSON.parse(one) as Record<string, unknown>),
    execute,
  };
}

export function eventsIn(text: string): readonly SentEvent[] {
  return text.split('\n\n').flatMap((frame) => {
    const member = (name: string) => frame.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2); // prettier-ignore
    const data = member('data');
    return data === undefined ? [] : [{ id: member('id'), event: member('event') ?? '', data: JSON.parse(data) as Record<string, unknown> }];
  });
}
