/** Sends drawn calls to a server in front of the vendors, and finds the refusals that a client of its own dialect would not have had. */
import type { Face } from '../support/all-faces.ts';
import { modelNames, providerOf, startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import { refusedBy, type WireName } from '../support/fakes/vendors/vendor.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { drawnCall, type DrawnCall } from './drawn-calls.ts';

export interface Finding {
  /** `vendor: rule, from face`, or what the gateway itself said. */
  readonly key: string;
  readonly seed: number;
  readonly model: string;
  readonly status: number;
  readonly raw: string;
}

export interface Judgement {
  /** Refusals that should not be. */
  readonly wrong: readonly Finding[];
  /** Refusals of the gateway itself, before anybody was asked. */
  readonly own: readonly Finding[];
  /** How often each rule refused, whether the client saw it or not. */
  readonly hits: ReadonlyMap<string, number>;
}

/** The wire that a face speaks. */
const spoken: Readonly<Record<Face, WireName>> = { chat: 'chat', responses: 'responses', messages: 'messages', gencompat: 'gemini' };

/** Of these nobody can say to the vendor what the client asked, so everybody is refused, whatever the interface. */
const inherent: ReadonlySet<string> = new Set([
  'deepseek: parts are text',
  'ollama: parts',
  'groq: one answer',
  'groq: no logprobs and bias',
  'groq: JSON and tools',
  // What is drawn as history was said by another provider: nobody has its thoughts.
  'deepseek: thoughts of calls are given back',
  'moonshot: thoughts of calls are given back',
]);

/** @param known do the vendors answer at their own addresses? */
export async function judged(seeds: Iterable<number>, known = true): Promise<Judgement> {
  const vendors = await startVendors();
  const server = await startTestServer({ yaml: known ? vendors.yaml : vendors.unknownYaml });
  const wrong: Finding[] = [];
  const own: Finding[] = [];
  const hits = new Map<string, number>();
  for (const seed of seeds) {
    vendors.reset();
    const call = drawnCall(seed);
    const { status, raw, warnings } = await sent(server, call);
    for (const { vendor, rule } of vendors.requests) if (rule !== undefined) hits.set(`${vendor}: ${rule}`, (hits.get(`${vendor}: ${rule}`) ?? 0) + 1);
    if (vendors.mishaps.length > 0) throw new Error(`Seed ${seed}: ${vendors.mishaps.join('\n')}`);
    const isAnswered = status === 200 && !raw.includes('"error":{');
    if (call.strict && isAnswered && !isDecision(call, warnings))
      wrong.push({ key: `${call.face}: a strict call is answered with a warning`, seed, model: call.model, status, raw: warnings });
    if (isAnswered || (call.strict && status === 400)) continue;
    const finding = { seed, model: call.model, status, raw: raw.slice(0, 600) };
    if (vendors.requests.length === 0 && (status === 400 || status === 501)) own.push({ ...finding, key: `${call.face}: ${ownWords(raw)}` });
    else if (!isDue(call, vendors, raw)) wrong.push({ ...finding, key: keyOf(call, vendors) });
  }
  wrong.push(...(await spoilt(server, vendors)));
  await server.close();
  await vendors.close();
  return { wrong, own, hits };
}

/** Models whose users get less than they ask for, because of what others have asked. */
async function spoilt(server: TestServer, vendors: Vendors): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  for (const model of modelNames.filter((name) => /^(?:azure-)?gpt-[56](?!.*oss)|^o3|^claude|^gemini/.test(name))) {
    vendors.reset();
    const body = { model, messages: [{ role: 'user', content: 'hello' }], reasoning_effort: 'high' };
    const { status, raw } = await sent(server, { path: '/server/chatcompat/v1/chat/completions', body, strict: false });
    const { body: arrived = {} } = vendors.requests.at(-1) ?? {};
    const thinks = arrived.reasoning_effort ?? arrived.reasoning?.effort ?? arrived.thinking?.type ?? arrived.generationConfig?.thinkingConfig;
    const isSpoilt = status !== 200 || thinks === undefined || thinks === 'disabled' || (typeof thinks === 'string' && arrived.reasoning && thinks !== 'high');
    if (isSpoilt) found.push({ key: `${model}: the effort high does not arrive any more`, seed: 0, model, status, raw: JSON.stringify(arrived) + raw });
  }
  return found;
}

async function sent({ url, key }: TestServer, { path, body, strict }: Pick<DrawnCall, 'path' | 'body' | 'strict'>) {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'x-access-tokens': key, 'content-type': 'application/json', ...(strict ? { 'x-dragoman-strict': 'true' } : {}) },
    body: JSON.stringify(body),
  });
  return { status: answer.status, raw: await answer.text(), warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
}

/** Would the vendor have refused the client's own words too? */
function isDue({ face, model, body }: DrawnCall, { requests }: Vendors, raw: string): boolean {
  const last = requests.at(-1)!;
  if (last.rule === undefined) return raw.includes('does not conform to the schema'); // the scripted models do not read instructions
  if (inherent.has(`${last.vendor}: ${last.rule}`)) return true;
  if (last.wire !== spoken[face]) return false;
  const { vendor, upstream } = providerOf(model);
  return refusedBy(vendor.wires[last.wire]!.rules, { wire: last.wire, model: upstream, body: { ...body, model: upstream }, headers: {} }) !== undefined;
}

function keyOf({ face }: DrawnCall, { requests }: Vendors): string {
  const { vendor, wire, rule } = requests.at(-1) ?? {};
  return rule === undefined ? `${face}: no refusal of ${vendor ?? 'anybody'}` : `${vendor} (${wire}): ${rule}, from ${face}`;
}

function ownWords(raw: string): string {
  const { error } = JSON.parse(raw) as { error: { message: string } };
  return error.message.replaceAll(/\d+/g, 'N').slice(0, 160);
}

/** Nothing, or what a strict client accepts: a value without which the vendor takes no request, and that the client left open, or what is kept with the response. */
const isDecision = ({ face }: DrawnCall, warnings: string): boolean =>
  warnings === '' ||
  warnings
    .split('; ')
    .every(
      (warning) =>
        (face === 'responses' && warning.startsWith('metadata: ')) ||
        /^max_tokens: the provider requires a limit and none is known for this model, so \d+ is sent\.$/.test(warning),
    );

/** The findings of each key with one example, most frequent first. */
export function grouped(findings: readonly Finding[]): string {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) groups.set(finding.key, [...(groups.get(finding.key) ?? []), finding]);
  return [...groups]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(
      ([key, [example, ...more]]) =>
        `${more.length + 1} × ${key}\n    seed ${example!.seed}, ${example!.model}: ${example!.status} ${example!.raw.replaceAll(/\s+/g, ' ').slice(0, 400)}`,
    )
    .join('\n');
}
