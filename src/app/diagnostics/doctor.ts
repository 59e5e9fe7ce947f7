import { open, opendir, rm, statfs } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { unusedProviders, type Settings } from '#config/index';
import type { RegionState } from '#gateway/routing/regions';
import { roomFor } from '#http/connection-limit';
import type { MissingPlan } from '#resources/plans/store';
import type { Holder } from '#resources/usage/holders';
import type { KeptLesson } from '#resources/lessons/store';
import type { Clock } from '#kit/async/clock';
import { fewAtOnce } from '#kit/async/few-at-once';
import { inUnits } from '#kit/text/in-units';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { codeInBrackets } from '#kit/net/error-code';
import type { Probe, Probed, Providers } from '#providers/index';
import type { Check } from './check.ts';
import type { Upstreams } from '#kit/upstream/pool';
import { examineAddresses } from './addresses.ts';
import type { Examined } from '#store/examine';
import { WrongMasterKey } from '#store/master-key';
import { UnusableDatabase } from '#store/unusable-database';

export interface DoctorDeps {
  readonly settings: () => Settings;
  readonly clock: Clock;
  /** `undefined` where the embedded database has not been created yet. */
  readonly database: () => Promise<Examined | undefined>;
  readonly providers: () => Providers;
  /** For the servers beside them: search engine, rerank, guards. */
  readonly upstreams: Pick<Upstreams, 'get'>;
  /** The state of the regions in a running server. */
  readonly regions: () => readonly RegionState[] | Promise<readonly RegionState[]>;
  /** What a running server has learned from refusals of providers. */
  readonly lessons: () => readonly KeptLesson[];
  /** Servers that are presumed dead and hold quota, as a running server knows them. */
  readonly lostHolders: () => Promise<readonly Holder[]>;
  /** Plans that are not there, and who has them, as a running server knows them. */
  readonly missingPlans: () => Promise<readonly MissingPlan[]>;
}

const probeMilliseconds = 5000;
const allProbesMilliseconds = 20_000;
const probesAtOnce = 32;
/** From this difference between clocks on there is a warning. */
const oddClockMilliseconds = 5000;
/** From this one on providers refuse signed requests. */
const wrongClockMilliseconds = 60_000;
const slowDiskMilliseconds = 200;
const fewClients = 1000;

/** Checks everything that a server needs, all at once. Spends no quota, changes nothing and reveals no secret. */
export async function examineAll(deps: DoctorDeps): Promise<readonly Check[]> {
  const { settings, clock } = deps;
  const [database, disk, probed, regions, addresses, folders, lost, plans] = await Promise.all([
    found(deps.database),
    found(() => examineDisk(settings(), clock)),
    probeAll(deps),
    deps.regions(),
    Promise.all(examineAddresses(settings(), deps.upstreams, clock)),
    Promise.all(settings().sources.folders.map(examineFolder)),
    found(deps.lostHolders),
    found(deps.missingPlans),
  ]);
  const runtime = examineRuntime(settings());
  return [
    runtime,
    'error' in database ? check('database', 'failed', whyNot(database.error)) : examinedDatabase(settings(), database.value),
    ...('error' in database ? [] : examinedPlaces(database.value)),
    'error' in disk ? check('disk', 'failed', `${settings().data} cannot be used${codeInBrackets(disk.error)}.`) : disk.value,
    examinedClock(settings(), 'error' in database ? undefined : database.value, probed),
    ...examinedProviders(deps, probed, regions),
    ...addresses,
    ...folders,
    ...('error' in lost ? [] : lostHoldersTold(lost.value)),
    ...('error' in plans ? [] : plans.value.map(missingPlanTold)),
    ...lessonsTold(deps.lessons()),
  ];
}

const mostLost = 20;

/** Servers whose leases nobody else can spend. */
function lostHoldersTold(holders: readonly Holder[]): readonly Check[] {
  return holders
    .slice(0, mostLost)
    .map(({ id, machine, accounts, silentSeconds }) =>
      check(
        `holder ${id}`,
        'warning',
        `The server on ${machine.slice(0, 100)} has been silent for ${inMinutes(silentSeconds)} and holds shares of ${inUnits(accounts, 'quotas')}, which no other server can spend: start it again on its data folder, or see "holder write-off" and "journal adopt".`,
      ),
    );
}

const missingPlanTold = ({ name, users, teams }: MissingPlan): Check =>
  check(
    `plan ${name}`,
    'warning',
    `There is no such plan, and ${inUnits(users, 'users')} and ${inUnits(teams, 'teams')} have it: their calls are refused. Make it, or give them another one.`,
  );

const inMinutes = (seconds: number) => (seconds < 120 ? `${Math.round(seconds)} seconds` : `${Math.round(seconds / 60)} minutes`);

const mostLessons = 20;

/** What was learned is no failure: requests are encoded accordingly. */
function lessonsTold(lessons: readonly KeptLesson[]): readonly Check[] {
  const told = lessons.slice(0, mostLessons).map(({ id, provider, model, wire, fields, learned, until }) => {
    const how = Object.entries(learned).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    const says = `lesson ${id} on ${wire}: refused ${fields.join(', ')}; requests differ by ${how.join(', ')} until ${new Date(until).toISOString()}.`;
    return check(`model ${model.slice(0, 100)} of ${provider}`, 'ok', says.slice(0, 500));
  });
  const more = lessons.length - told.length;
  return more > 0 ? [...told, check('lessons', 'ok', `${more} more, in GET /server/admin/lessons.`)] : told;
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
  if (workers > cores) return check('runtime', 'warning', `${says}: fewer than the ${workers} workers.`);
  if (clients < Math.min(maxConnections, fewClients))
    return check('runtime', 'warning', `${says}; the limit on open files allows only ${clients} client connections (ulimit -n).`);
  return check('runtime', 'ok', `${says}.`);
}

function examinedDatabase({ databaseUrl, data }: Settings, examined: Examined | undefined): Check {
  if (!examined) return check('database', 'skipped', `The first start creates it in ${data}.`);
  const { version, hasVector, isReadOnly, connections, mostConnections, milliseconds } = examined;
  const vectors = hasVector ? 'with pgvector' : 'without pgvector';
  if (databaseUrl === undefined) return check('database', 'ok', `embedded PostgreSQL ${version}, ${vectors}.`, milliseconds);
  const says = `PostgreSQL ${version}, ${vectors}, ${connections} of ${mostConnections} connections open`;
  if (isReadOnly) return check('database', 'failed', `${says}; it is read-only.`, milliseconds);
  return check('database', connections > 0.9 * mostConnections ? 'warning' : 'ok', `${says}.`, milliseconds);
}

/** Where machines share a database, and not the originals of files. */
function examinedPlaces(examined: Examined | undefined): readonly Check[] {
  const places = examined?.places ?? [];
  if (places.length < 2) return [];
  const says = `${places.length} machines (${[...new Set(places)].slice(0, 10).join(', ')}) keep originals of files in folders of their own: what is sent to one cannot be fetched from another, and is read while that one runs. Set blobs.s3.`;
  return [check('files', 'warning', says)];
}

async function examineDisk({ data, limits: { minFreeBytes } }: Settings, clock: Clock): Promise<Check> {
  const { bavail, blocks, bsize } = await statfs(existing(data));
  const free = bavail * bsize;
  const milliseconds = existsSync(data) ? await timeToDisk(data, clock) : undefined;
  const says = `${sizeOf(free)} of ${sizeOf(blocks * bsize)} free at ${data}`;
  if (free < minFreeBytes) return check('disk', 'failed', `${says}: calls are refused while less than ${sizeOf(minFreeBytes)} is free.`, milliseconds);
  if (milliseconds !== undefined && milliseconds > slowDiskMilliseconds)
    return check('disk', 'warning', `${says}; the disk is slow: a small write took this long.`, milliseconds);
  return check('disk', free < 4 * minFreeBytes ? 'warning' : 'ok', `${says}.`, milliseconds);
}

/** A folder that datasets may follow. */
async function examineFolder(folder: string): Promise<Check> {
  const name = `folder ${folder.slice(0, 200)}`;
  try {
    const names = await opendir(folder);
    await names.close();
    return check(name, 'ok', 'Datasets may follow it.');
  } catch (error) {
    return check(name, 'warning', `It cannot be read${codeInBrackets(error)}: datasets that follow it stay as they are.`);
  }
}

/** The folder, or the nearest one above it that exists. */
const existing = (folder: string): string => (existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder)));

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

interface ProbeResult {
  readonly provider: string;
  readonly probe: Probe;
  readonly probed: Probed;
  /** By how many milliseconds its clock is ahead of this one, and by how many that may be wrong. */
  readonly ahead: { readonly milliseconds: number; readonly doubt: number } | undefined;
}

async function probeAll({ settings, providers, clock }: DoctorDeps): Promise<readonly ProbeResult[]> {
  const questions = Object.keys(settings().providers).flatMap((provider) =>
    providers()
      .probes(provider, modelAt(settings(), provider))
      .map((probe) => ({ provider, probe })),
  );
  const overall = deadline(clock, allProbesMilliseconds);
  const answers = await fewAtOnce(questions, probesAtOnce, async ({ provider, probe }): Promise<ProbeResult> => {
    const own = deadline(clock, probeMilliseconds);
    const probed = await probe.ask(AbortSignal.any([own.signal, overall.signal]));
    own.cancel();
    return { provider, probe, probed, ahead: aheadOf(probed, clock) };
  });
  overall.cancel();
  return answers;
}

/** A `Date` header is truncated to the second, and is as old as half the round trip. */
function aheadOf({ date, milliseconds = 0 }: Probed, clock: Clock): ProbeResult['ahead'] {
  return date === undefined ? undefined : { milliseconds: date + 500 - (clock.now() - milliseconds / 2), doubt: 500 + milliseconds / 2 };
}

function deadline(clock: Clock, milliseconds: number): { readonly signal: AbortSignal; readonly cancel: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, cancel: clock.after(milliseconds, () => controller.abort(new Error('Timed out.'))) };
}

function modelAt({ models }: Settings, provider: string): string | undefined {
  for (const [name, { targets }] of Object.entries(models))
    for (const target of targets) if (target.provider === provider && (target.model ?? name) !== '*') return target.model ?? name;
  return undefined;
}

/** Compares this clock with the database's and with the nearest of the providers': a clock that differs from all others is wrong, while one provider's may be off by itself. */
function examinedClock({ databaseUrl }: Settings, database: Examined | undefined, answers: readonly ProbeResult[]): Check {
  const others = answers.flatMap(({ provider, ahead }) =>
    ahead ? [{ who: provider, milliseconds: Math.sign(ahead.milliseconds) * Math.max(0, Math.abs(ahead.milliseconds) - ahead.doubt) }] : [],
  );
  const nearest = others.toSorted((a, b) => Math.abs(a.milliseconds) - Math.abs(b.milliseconds))[0];
  const compared = [
    ...(database && databaseUrl !== undefined ? [{ who: 'the database', milliseconds: database.aheadMilliseconds }] : []), // the embedded one has this clock
    ...(nearest ? [nearest] : []),
  ];
  if (compared.length === 0) return check('clock', 'skipped', 'There is no other clock to compare with.');
  const worst = Math.max(...compared.map(({ milliseconds }) => Math.abs(milliseconds)));
  const says = compared.map(({ who, milliseconds }) => `${apart(milliseconds)} that of ${who}`).join(', ');
  return check('clock', worst > wrongClockMilliseconds ? 'failed' : worst > oddClockMilliseconds ? 'warning' : 'ok', `${says}.`);
}

function apart(milliseconds: number): string {
  const seconds = Math.round(Math.abs(milliseconds) / 100) / 10;
  if (seconds < 1) return 'within a second of';
  return `${seconds} seconds ${milliseconds > 0 ? 'behind' : 'ahead of'}`;
}

function examinedProviders({ settings, providers }: DoctorDeps, answers: readonly ProbeResult[], regions: readonly RegionState[]): readonly Check[] {
  const names = Object.keys(settings().providers);
  const unused = new Set(unusedProviders(settings()));
  if (names.length === 0) return [check('providers', 'skipped', 'No provider is configured: only the built-in models answer.')];
  return names.flatMap((name): readonly Check[] => {
    const own = answers.filter(({ provider }) => provider === name);
    if (own.length > 0)
      return Array.from(
        Map.groupBy(own, ({ probe }) => probe.region),
        ([region, some]) => {
          const states = region === undefined ? [] : regions.filter((one) => one.provider === name && one.region === region);
          return examinedPlace(region === undefined ? `provider ${name}` : `region ${region} of ${name}`, some, { states, isUnused: unused.has(name) });
        },
      );
    return providers().unspoken.includes(name)
      ? [check(`provider ${name}`, 'failed', 'Its settings are incomplete, or this version does not support its dialect.')]
      : [check(`provider ${name}`, 'skipped', 'No model in the settings uses it.')];
  });
}

const unusedWords = 'no model in the settings uses it';

const severity = { ok: 0, warning: 1, failed: 2 } as const;

/** One provider or region, with all its keys, and the state of recent calls there. */
function examinedPlace(
  name: string,
  answers: readonly ProbeResult[],
  { states, isUnused }: { readonly states: readonly RegionState[]; readonly isUnused: boolean },
): Check {
  const worst = answers.map(({ probed }) => probed.state).reduce((a, b) => (severity[b] > severity[a] ? b : a));
  const slowest = Math.max(0, ...answers.map(({ probed }) => probed.milliseconds ?? 0));
  const unhealthy = states
    .filter(({ state }) => state !== 'ok')
    .map(({ model, state, until }) => `${state} for ${model}${until === null ? '' : ` until ${until}`}`);
  const bySentence = Array.from(Map.groupBy(answers, ({ probed }) => probed.says));
  const troubles = bySentence.filter(([, [first]]) => first!.probed.state !== 'ok' || bySentence.length === 1);
  const says = [...troubles.map(([words, some]) => `${words}${keysOf(some, answers.length)}`), ...unhealthy, ...(isUnused ? [unusedWords] : [])].join('; ');
  return check(name, worst === 'ok' && unhealthy.length > 0 ? 'warning' : worst, `${says}.`, slowest || undefined);
}

/** Which keys, where there are several. */
function keysOf(some: readonly ProbeResult[], all: number): string {
  if (all === 1) return '';
  return some.length === all ? ` with each of its ${all} keys` : ` with ${some.map(({ probe }) => probe.credential).join(', ')}`;
}

/** Sentences for operators: our own, an error code, and PostgreSQL's message; never the message of another error, which may contain an address with its password. */
function whyNot(error: unknown): string {
  if (error instanceof UnusableDatabase || error instanceof WrongMasterKey) return error.message;
  if (!(error instanceof Fault)) return `It cannot be opened${codeInBrackets(error)}.`;
  for (let one: unknown = error; one instanceof Error; one = one.cause) if ('severity' in one) return `${error.message} PostgreSQL says: ${one.message}.`;
  return `${error.message}${codeInBrackets(error)}`;
}
