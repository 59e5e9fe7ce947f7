import { open, rm, statfs } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { Settings } from '#config/index';
import type { RegionState } from '#gateway/routing/regions';
import { roomFor } from '#http/connection-limit';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import type { Probe, Probed, Providers } from '#providers/index';
import type { Examined } from '#store/examine';

/** One thing that was looked at. */
export interface Check {
  /** `database`, `provider openai`, `region us-east1 of platform` */
  readonly name: string;
  /** Of what failed, something does not work; a warning is worth a look; what was skipped could not be asked. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly says: string;
  /** How long it took to answer, where that says something. */
  readonly milliseconds: number | null;
}

export interface DoctorDeps {
  readonly settings: () => Settings;
  readonly clock: Clock;
  /** @returns nothing where the embedded database has not been made yet */
  readonly database: () => Promise<Examined | undefined>;
  readonly providers: () => Providers;
  /** The regions as they stand in a running server. */
  readonly regions: () => readonly RegionState[] | Promise<readonly RegionState[]>;
}

const probeMilliseconds = 5000;
const allProbesMilliseconds = 20_000;
const probesAtOnce = 32;
/** A difference of clocks that is worth a look, and one with which signed requests are refused. */
const oddClockMilliseconds = 5000;
const wrongClockMilliseconds = 60_000;
const slowDiskMilliseconds = 200;
const fewClients = 1000;

/** Looks at everything that a server needs, at once. Spends nothing, changes nothing, says no secret. */
export async function examineAll(parts: DoctorDeps): Promise<readonly Check[]> {
  const { settings, clock } = parts;
  const [database, disk, probed, regions] = await Promise.all([
    found(parts.database),
    found(() => examineDisk(settings(), clock)),
    probeAll(parts),
    parts.regions(),
  ]);
  const runtime = examineRuntime(settings());
  return [
    runtime,
    'error' in database ? check('database', 'failed', whyNot(database.error)) : examinedDatabase(settings(), database.value),
    'error' in disk ? check('disk', 'failed', `${settings().data} cannot be used${codeOf(disk.error)}.`) : disk.value,
    examinedClock(settings(), 'error' in database ? undefined : database.value, probed),
    ...examinedProviders(parts, probed, regions),
  ];
}

const check = (name: string, state: Check['state'], says: string, milliseconds?: number): Check => ({
  name,
  state,
  says,
  milliseconds: milliseconds === undefined ? null : Math.round(milliseconds * 10) / 10,
});

type Found<Value> = { readonly value: Value } | { readonly error: unknown };

async function found<Value>(work: () => Promise<Value>): Promise<Found<Value>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { error };
  }
}

function examineRuntime({ workers, limits: { maxConnections } }: Settings): Check {
  const cores = availableParallelism();
  const clients = roomFor(maxConnections);
  const says = `Node ${process.versions.node} on ${process.platform} ${process.arch}, ${cores} processors`;
  if (workers > cores) return check('runtime', 'warning', `${says}: ${workers} workers are more than that.`);
  if (clients < Math.min(maxConnections, fewClients))
    return check('runtime', 'warning', `${says}; the system lets a process open so few files that at most ${clients} clients may be connected (ulimit -n).`);
  return check('runtime', 'ok', `${says}.`);
}

function examinedDatabase({ databaseUrl, data }: Settings, examined: Examined | undefined): Check {
  if (!examined) return check('database', 'skipped', `The first start makes it, in ${data}.`);
  const { version, hasVector, isReadOnly, connections, mostConnections, milliseconds } = examined;
  const vectors = hasVector ? 'with pgvector' : 'without pgvector';
  if (databaseUrl === undefined) return check('database', 'ok', `embedded PostgreSQL ${version}, ${vectors}.`, milliseconds);
  const says = `PostgreSQL ${version}, ${vectors}, ${connections} of ${mostConnections} connections open`;
  if (isReadOnly) return check('database', 'failed', `${says}; it takes no changes.`, milliseconds);
  return check('database', connections > 0.9 * mostConnections ? 'warning' : 'ok', `${says}.`, milliseconds);
}

async function examineDisk({ data, limits: { minFreeBytes } }: Settings, clock: Clock): Promise<Check> {
  const { bavail, blocks, bsize } = await statfs(standing(data));
  const free = bavail * bsize;
  const milliseconds = existsSync(data) ? await timeToDisk(data, clock) : undefined;
  const says = `${sizeOf(free)} of ${sizeOf(blocks * bsize)} free at ${data}`;
  if (free < minFreeBytes) return check('disk', 'failed', `${says}: with less than ${sizeOf(minFreeBytes)} no call that spends is admitted.`, milliseconds);
  if (milliseconds !== undefined && milliseconds > slowDiskMilliseconds)
    return check('disk', 'warning', `${says}; it is slow: this is what a small write took.`, milliseconds);
  return check('disk', free < 4 * minFreeBytes ? 'warning' : 'ok', `${says}.`, milliseconds);
}

/** The folder, or the next one above that is there. */
function standing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : standing(dirname(folder));
}

/** Milliseconds until a small write is on the disk. */
async function timeToDisk(folder: string, clock: Clock): Promise<number> {
  const path = join(folder, `doctor-${randomText(12)}`);
  const startedAt = clock.monotonic();
  const file = await open(path, 'wx', 0o600);
  try {
    await file.write(Buffer.alloc(4096));
    await file.datasync();
    return clock.monotonic() - startedAt;
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];

function sizeOf(bytes: number): string {
  const unit = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log(bytes) / Math.log(1024)));
  return `${(bytes / 1024 ** unit).toFixed(unit > 1 && bytes / 1024 ** unit < 100 ? 1 : 0)} ${units[unit]}`;
}

/** What a provider answered to one of its questions. */
interface Answered {
  readonly provider: string;
  readonly probe: Probe;
  readonly probed: Probed;
  /** By how many milliseconds its clock is ahead of ours, and how much of that may be chance. */
  readonly ahead: { readonly milliseconds: number; readonly doubt: number } | undefined;
}

async function probeAll({ settings, providers, clock }: DoctorDeps): Promise<readonly Answered[]> {
  const questions = Object.keys(settings().providers).flatMap((provider) =>
    providers()
      .probes(provider, modelAt(settings(), provider))
      .map((probe) => ({ provider, probe })),
  );
  const overall = deadline(clock, allProbesMilliseconds);
  const answers = await severalAtOnce(questions, probesAtOnce, async ({ provider, probe }): Promise<Answered> => {
    const own = deadline(clock, probeMilliseconds);
    const probed = await probe.ask(AbortSignal.any([own.signal, overall.signal]));
    own.cancel();
    return { provider, probe, probed, ahead: aheadOf(probed, clock) };
  });
  overall.cancel();
  return answers;
}

/** A `Date` header is cut to the second, and is as old as half of the round trip. */
function aheadOf({ date, milliseconds = 0 }: Probed, clock: Clock): Answered['ahead'] {
  return date === undefined ? undefined : { milliseconds: date + 500 - (clock.now() - milliseconds / 2), doubt: 500 + milliseconds / 2 };
}

function deadline(clock: Clock, milliseconds: number): { readonly signal: AbortSignal; readonly cancel: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, cancel: clock.after(milliseconds, () => controller.abort(new Error('The time was over.'))) };
}

async function severalAtOnce<One, Result>(all: readonly One[], most: number, work: (one: One) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  const left = all.entries();
  const hand = async () => {
    for (const [at, one] of left) results[at] = await work(one);
  };
  await Promise.all(Array.from({ length: most }, hand));
  return results;
}

/** A model that the settings ask this provider for. */
function modelAt({ models }: Settings, provider: string): string | undefined {
  for (const [name, { targets }] of Object.entries(models))
    for (const target of targets) if (target.provider === provider && (target.model ?? name) !== '*') return target.model ?? name;
  return undefined;
}

/** A clock that nobody agrees with is wrong; one provider's may be its own affair. */
function examinedClock({ databaseUrl }: Settings, database: Examined | undefined, answers: readonly Answered[]): Check {
  const others = answers.flatMap(({ provider, ahead }) =>
    ahead ? [{ who: provider, milliseconds: Math.sign(ahead.milliseconds) * Math.max(0, Math.abs(ahead.milliseconds) - ahead.doubt) }] : [],
  );
  const nearest = others.toSorted((a, b) => Math.abs(a.milliseconds) - Math.abs(b.milliseconds))[0];
  const witnesses = [
    ...(database && databaseUrl !== undefined ? [{ who: 'the database', milliseconds: database.aheadMilliseconds }] : []), // the embedded one has this clock
    ...(nearest ? [nearest] : []),
  ];
  if (witnesses.length === 0) return check('clock', 'skipped', 'There is no other clock to compare it with.');
  const worst = Math.max(...witnesses.map(({ milliseconds }) => Math.abs(milliseconds)));
  const says = witnesses.map(({ who, milliseconds }) => `${apart(milliseconds)} that of ${who}`).join(', ');
  return check('clock', worst > wrongClockMilliseconds ? 'failed' : worst > oddClockMilliseconds ? 'warning' : 'ok', `${says}.`);
}

function apart(milliseconds: number): string {
  const seconds = Math.round(Math.abs(milliseconds) / 100) / 10;
  if (seconds < 1) return 'within a second of';
  return `${seconds} seconds ${milliseconds > 0 ? 'behind' : 'ahead of'}`;
}

function examinedProviders({ settings, providers }: DoctorDeps, answers: readonly Answered[], regions: readonly RegionState[]): readonly Check[] {
  const names = Object.keys(settings().providers);
  if (names.length === 0) return [check('providers', 'skipped', 'None is configured: only the built-in models answer.')];
  return names.flatMap((name): readonly Check[] => {
    const own = answers.filter(({ provider }) => provider === name);
    if (own.length > 0)
      return Array.from(
        Map.groupBy(own, ({ probe }) => probe.region),
        ([region, some]) => {
          const states = region === undefined ? [] : regions.filter((one) => one.provider === name && one.region === region);
          return examinedPlace(region === undefined ? `provider ${name}` : `region ${region} of ${name}`, some, states);
        },
      );
    return providers().unspoken.includes(name)
      ? [check(`provider ${name}`, 'failed', 'The settings are not enough to ask it, or its dialect is not spoken here.')]
      : [check(`provider ${name}`, 'skipped', 'No model of the settings is asked there.')];
  });
}

const gravity = { ok: 0, warning: 1, failed: 2 } as const;

/** One provider or region, by all its keys, and how calls have fared there of late. */
function examinedPlace(name: string, answers: readonly Answered[], states: readonly RegionState[]): Check {
  const worst = answers.map(({ probed }) => probed.state).reduce((a, b) => (gravity[b] > gravity[a] ? b : a));
  const slowest = Math.max(0, ...answers.map(({ probed }) => probed.milliseconds ?? 0));
  const ailing = states
    .filter(({ state }) => state !== 'ok')
    .map(({ model, state, until }) => `${state} for ${model}${until === null ? '' : ` until ${until}`}`);
  const said = Array.from(Map.groupBy(answers, ({ probed }) => probed.says));
  const troubles = said.filter(([, [first]]) => first!.probed.state !== 'ok' || said.length === 1);
  const says = [...troubles.map(([words, some]) => `${words}${byWhom(some, answers.length)}`), ...ailing].join('; ');
  return check(name, worst === 'ok' && ailing.length > 0 ? 'warning' : worst, `${says}.`, slowest || undefined);
}

/** Which of its keys, where it has several. */
function byWhom(some: readonly Answered[], all: number): string {
  if (all === 1) return '';
  return some.length === all ? ` with each of its ${all} keys` : ` with ${some.map(({ probe }) => probe.credential).join(', ')}`;
}

/** For operators: our own words, a code, and what PostgreSQL said; never the text of another error, which may repeat an address with its password. */
function whyNot(error: unknown): string {
  if (!(error instanceof Fault)) return `It does not open${codeOf(error)}.`;
  for (let one: unknown = error; one instanceof Error; one = one.cause) if ('severity' in one) return `${error.message} PostgreSQL says: ${one.message}.`;
  return `${error.message}${codeOf(error)}`;
}

function codeOf(error: unknown): string {
  for (let one = error; one instanceof Error; one = one.cause)
    if ('code' in one && typeof one.code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(one.code)) return ` (${one.code})`;
  return '';
}
