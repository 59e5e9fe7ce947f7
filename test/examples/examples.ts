import type { TestServer } from '../support/server.ts';
import { steps } from './requests.ts';

export interface Example {
  readonly request?: unknown;
  readonly answer?: unknown;
}

/** Asks a server, and gives each request with its answer, without what differs from run to run. @throws where a request is refused */
export async function madeExamples(server: TestServer): Promise<Readonly<Record<string, Example>>> {
  const kept = new Map<string, unknown>();
  const examples: Record<string, Example> = {};
  for (const { operation, method, path, body, keeps = {} } of steps) {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(kept.get(name)));
    const request = filledBody(body, kept);
    const answer = await server.ask(filled, request, method === undefined ? {} : { method });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method ?? ''} ${filled}: ${answer.status} ${text}`);
    const value: unknown = JSON.parse(text);
    for (const [name, member] of Object.entries(keeps)) kept.set(name, (value as Record<string, unknown>)[member]);
    if (operation !== '') examples[operation] = { ...(body === undefined ? {} : { request: steady(request) }), answer: steady(value) };
  }
  return examples;
}

/** `"{user}"` becomes the value that was kept. */
function filledBody(body: unknown, kept: ReadonlyMap<string, unknown>): unknown {
  if (body === undefined) return undefined;
  return JSON.parse(JSON.stringify(body), (_, value: unknown) => (typeof value === 'string' && /^\{\w+\}$/.test(value) ? kept.get(value.slice(1, -1)) : value));
}

const moment = Date.UTC(2026, 10, 21, 14);

/** Ids, keys, times and measured figures replaced by such as never change; long lists cut. */
function steady(value: unknown, member = ''): unknown {
  if (Array.isArray(value)) return (value.length > 5 ? value.slice(0, 3) : value).map((one) => steady(one, member));
  if (value !== null && typeof value === 'object') {
    const isCancelled = (value as { readonly status?: unknown }).status === 'cancelled'; // before it began to be counted, or after
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, isCancelled && name === 'usage' ? null : steady(one, name)]));
  }
  if (typeof value === 'number') return steadyNumber(value, member);
  if (typeof value !== 'string') return value;
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return new Date(moment).toISOString();
  if (value.startsWith('dgm_')) return `dgm_${'x'.repeat(60)}`;
  return value.replace(/^([a-z]{2,10}[-_])?[A-Za-z0-9_-]{18,}$/, (text, prefix: string | undefined) =>
    (/\d/.test(text) || /^([a-z]{2,10}[-_])?(?=.*[A-Z])[A-Za-z0-9]{22}$/.test(text)) && !text.includes('built-in') ? `${prefix ?? ''}3fK9sW2mQ7` : text,
  );
}

function steadyNumber(value: number, member: string): number {
  if (value > 1_700_000_000 && value < 2_500_000_000) return moment / 1000;
  if (/(ms|milliseconds)$/i.test(member)) return 12;
  return Number.isInteger(value) ? value : Math.round(value * 1e6) / 1e6;
}
