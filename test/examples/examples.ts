import type { TestServer } from '../support/server.ts';
import { steps } from './requests.ts';
import type { Step } from './step.ts';

export interface Example {
  readonly request?: unknown;
  readonly answer?: unknown;
}

/** Asks a server, and gives each request with its answer, without what differs from run to run. @throws where a request is refused */
export async function madeExamples(server: TestServer): Promise<Readonly<Record<string, Example>>> {
  const kept = new Map<string, unknown>();
  const examples: Record<string, Example> = {};
  let taken = 0;
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at]!;
    const { operation, body, keeps = {}, wants } = step;
    const request = filledBody(body, kept);
    const value = await answered(server, step, request, kept);
    if (wants && !wants(value) && taken++ < mostTries) {
      at -= 2;
      continue;
    }
    for (const [name, member] of Object.entries(keeps)) kept.set(name, memberOf(value, member));
    if (operation !== '') examples[operation] = { ...(body === undefined ? {} : { request: steady(request) }), answer: steady(value) };
  }
  return examples;
}

const mostTries = 2400;

async function answered(
  server: TestServer,
  { method, path, form, credential, until }: Step,
  request: unknown,
  kept: ReadonlyMap<string, unknown>,
): Promise<unknown> {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(kept.get(name)));
  const headers = credential === undefined ? {} : { authorization: `Bearer ${String(filledBody(credential, kept))}` };
  for (let tries = 0; tries < mostTries; tries++) {
    const answer = form
      ? await fetch(server.url + filled, { method: 'POST', headers: { authorization: `Bearer ${server.key}` }, body: formOf(form) })
      : await server.ask(filled, request, { ...(method === undefined ? {} : { method }), headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method ?? ''} ${filled}: ${answer.status} ${text}`);
    const value: unknown = JSON.parse(text);
    if (until === undefined || until(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`${filled} never gave what was waited for.`);
}

function formOf({ name, filename, text, fields = {} }: NonNullable<Step['form']>): FormData {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append(name, new File([text], filename, { type: 'text/plain' }));
  return form;
}

/** `items.0.id` */
const memberOf = (value: unknown, path: string): unknown => path.split('.').reduce((one, name) => (one as Record<string, unknown>)[name], value);

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
    const left = asIfSooner(value);
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, Object.hasOwn(left, name) ? left[name] : steady(one, name)]));
  }
  if (typeof value === 'number') return steadyNumber(value, member);
  if (typeof value !== 'string') return value;
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return new Date(moment).toISOString();
  if (/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/.test(value)) return new Date(moment).toUTCString();
  if (/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(value)) return 'eyJhbGciOiJFZERTQSJ9.3fK9sW2mQ7.3fK9sW2mQ7';
  if (value.startsWith('user_custom_')) return value;
  if (value.startsWith('dgm_') || /^k{64}$/.test(value)) return `dgm_${'x'.repeat(60)}`;
  if (/^\d{15}$/.test(value)) return '100000000000001';
  const text = value.replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, '3f9a5c2e-7b1d-4e86-9c40-5d2b8f6a1e37');
  if (text !== value) return text;
  return value.replace(/^([a-z]{2,10}[-_])?[A-Za-z0-9_-]{18,}$/, (text, prefix: string | undefined) =>
    (/\d/.test(text) || /^([a-z]{2,10}[-_])?(?=.*[A-Z])[A-Za-z0-9]{22}$/.test(text)) && !text.includes('built-in') ? `${prefix ?? ''}3fK9sW2mQ7` : text,
  );
}

/** Members of what goes on by itself, as they are before it has begun. */
function asIfSooner(value: { readonly status?: unknown; readonly state?: unknown; readonly jobId?: unknown }): Readonly<Record<string, unknown>> {
  if (value.status === 'cancelled') return { usage: null, output: [] };
  return value.state === 'running' && typeof value.jobId === 'string' ? { state: 'waiting', stage: null } : {};
}

function steadyNumber(value: number, member: string): number {
  if (value > 1_700_000_000 && value < 2_500_000_000) return moment / 1000;
  if (Number.isInteger(value) && String(value).length === 15) return 100_000_000_000_001; // the id of a run
  if (/(ms|milliseconds)$/i.test(member)) return 12;
  return Number.isInteger(value) ? value : Math.round(value * 1e6) / 1e6;
}
