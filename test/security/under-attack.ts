import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Attack } from './attack.ts';
import { embedded } from '../support/databases.ts';
import { always, ok, on, startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { loopWatch, watched } from './watched.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';

/** Milliseconds of work at a stretch, and bytes above those of a server that has warmed up. */
const most = { stretch: 50, resident: 512 * 2 ** 20 };

/** What became of a server that was attacked. */
export interface Borne {
  /** What it could not bear: attacks that held its event loop or its memory, that were answered by 500, or by another status than they should be. */
  readonly unbearable: readonly string[];
  /** The longest stretch of work of all, the most memory above that of the idle server, and whose they were. */
  readonly figures: string;
}

/** A provider of each wire, and models that checks hold for: one of patterns and personal data, and one of another model. */
const providers = (upstream: string) => `  thinks: { dialect: openai-responses, baseUrl: "${upstream}/v1", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "${upstream}", apiKeys: [k] }
  google: { dialect: gemini, baseUrl: "${upstream}/v1beta", apiKeys: [k] }
`;
const settings = `
  over-responses: { targets: [{ provider: thinks }] }
  over-messages: { targets: [{ provider: claude }] }
  over-gemini: { targets: [{ provider: google }] }
  guarded: { targets: [{ provider: fake }] }
  judged: { targets: [{ provider: fake }] }
  judge: { targets: [{ provider: fake }] }
  vectors: { kind: embedding, targets: [{ provider: fake }] }
  guarded-vectors: { kind: embedding, targets: [{ provider: fake }] }
routing: { cooldownSeconds: 0 }
guard:
  checks:
    - { name: secrets, when: [before, after], kind: regex, pattern: "AKIA[0-9A-Z]{16}", action: deny, models: [guarded, guarded-vectors] }
    - { name: personal, when: [before, after], kind: pii, entities: [email, credit-card, iban, phone, ip, US_SSN], action: mask, models: [guarded, guarded-vectors] }
    - { name: fruit, when: [before, after], kind: regex, pattern: "(?i)banana", action: flag, models: [guarded, guarded-vectors] }
    - { name: judge, when: [before, after], kind: moderation, model: judge, action: deny, models: [judged] }
`;

/** Loads the built-in embedding model, whose memory belongs to a server that has warmed up. */
const warming: Attack = { name: 'warming', path: '/server/chatcompat/v1/embeddings', body: () => ({ model: 'built-in-embedding', input: 'x' }) };

/** Attacks a server of its own with each of them, one after the other. */
export async function underAttack(attacks: readonly Attack[]): Promise<Borne> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, settings, { providers: providers(upstream.url), preload: loopWatch });
  for (const attack of [warming, ...attacks.slice(0, 3)]) await suffered(server, upstream, attack);
  const idle = (await watched(server, 'collect')).resident;
  const unbearable: string[] = [];
  const worst = { stretch: 0, stretchOf: '', resident: 0, residentOf: '' };
  for (const attack of attacks) {
    let seen = await suffered(server, upstream, attack);
    // Code that is not warm yet, and the garbage of the attacks before, are no fault of the request.
    // Each limit has to be met by some try, not all by the same one.
    for (let again = 0; again < 4 && (seen.stretch > most.stretch || seen.resident - idle > most.resident); again++) {
      await setTimeout(1000);
      await watched(server, 'collect');
      const other = await suffered(server, upstream, attack);
      seen = { ...other, stretch: Math.min(seen.stretch, other.stretch), resident: Math.min(seen.resident, other.resident) };
    }
    const held = seen.resident - idle;
    const figures = `${attack.name}: ${seen.stretch.toFixed(1)} ms, ${megabytes(held)} MB, status ${seen.status}`;
    const isAsExpected = attack.status === undefined ? seen.status !== 500 : attack.status === seen.status;
    if (seen.stretch > most.stretch || held > most.resident || !isAsExpected) unbearable.push(figures);
    if (seen.stretch > worst.stretch) Object.assign(worst, { stretch: seen.stretch, stretchOf: attack.name });
    if (held > worst.resident) Object.assign(worst, { resident: held, residentOf: attack.name });
  }
  return {
    unbearable,
    figures: `${attacks.length} attacks; the longest stretch ${worst.stretch.toFixed(1)} ms (${worst.stretchOf}); the most memory above idle ${megabytes(worst.resident)} MB (${worst.residentOf})`,
  };
}

const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20);

/** Sends it, reads the answer to its end, and says what the server did meanwhile. */
async function suffered(
  server: ServerProcess,
  upstream: Upstream,
  { path, method = 'POST', headers, body, answer }: Attack,
): Promise<Awaited<ReturnType<typeof watched>> & { readonly status: number }> {
  upstream.reset();
  upstream.script(on({ model: 'judge' }, always(ok({ text: '{"flagged": false}' }))));
  if (answer) upstream.script(always(answer()));
  await watched(server);
  let status = 0;
  try {
    const given = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...headers },
      ...(body ? { body: bytesOf(body()), duplex: 'half' } : {}),
      signal: AbortSignal.timeout(60_000),
    });
    status = given.status;
    for await (const _ of given.body!);
  } catch {
    /* an answer that breaks off is one, too */
  }
  return { ...(await watched(server)), status };
}

type Sent = NonNullable<ReturnType<NonNullable<Attack['body']>>>;

const bytesOf = (body: Sent) => (typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream ? body : JSON.stringify(body));
