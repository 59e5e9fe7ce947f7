import { crc32 } from 'node:zlib';
import type { Book, Owner } from '#core/account';
import { permits } from '#core/lease';
import { dayOf, monthOf, type Plan } from '#core/plan';
import type { UsageRow } from '#core/usage-row';
import { isRunning } from '../../src/faces/chatcompat/responses/continuation.ts';
import { Auditor, isSpent } from './auditor.ts';
import { booksModel, booksOf, type BooksModel } from './books-model.ts';
import { ask, fresh, modelFor, nameOf, route, type Asked, type Ending } from './clients.ts';
import { Machine, type DiskFault, type Planted } from './machine.ts';
import { watchMoments } from './moments.ts';
import type { Weather } from './network.ts';
import { begin, witnessedTakes, wrongRuns } from './run-clients.ts';
import { keysModel, runsModel } from './runs-model.ts';
import { chanceOf, World, type Life } from './world.ts';

export interface Choices {
  /** In place of the real thing, to see that the auditor bites. */
  readonly planted?: Planted;
  readonly books?: (now: () => number) => BooksModel;
  /** A quiet life but for this: at the point of this number the process that comes to it dies. */
  readonly dieAt?: number;
}

export interface Outcome {
  /** What is wrong with the books, in words. */
  readonly problems: readonly string[];
  /** Points at which a process could have died. */
  readonly points: number;
  /** The same for the same life. */
  readonly trace: string;
  /** What happened, a line each. */
  readonly story: string;
}

/** Milliseconds each way at most, when the database is slow. */
const slow = 1500;
/** Milliseconds within which a process hears of a revocation and has looked up whom it is about, where the database is there: after one failure as well. */
const hearing = 1000;
/** Milliseconds within which all that was cut off must be booked. */
const recovery = 30_000;
/** Milliseconds within which one more run begins and ends, of those that wait for a limit: it frees, and nobody pauses for longer. With requests a minute two pauses may lie between, as permits that another holder used or has are not known here. */
const turns = { streams: 60_000, requests: 150_000 };

/** One life of a small service, made of chance alone: everything that may go wrong does, then all is well again, and the books must be right. */
export async function run(seed: number, { planted = {}, books: makeBooks = booksModel, dieAt }: Choices = {}): Promise<Outcome> {
  const chance = chanceOf(seed);
  const some = (most: number) => Math.floor(chance() * most);
  const maybe = (share: number) => chance() < share;
  const world = new World(Date.UTC(2026, 10, 30, 23, 59, maybe(0.3) ? 57 : 0));
  const books = makeBooks(() => world.clock.now() / 1000);
  const limit = 500 + some(2500);
  // Of their own chance, so that a life has otherwise what it had without them.
  const more = chanceOf(seed ^ 0x5eed);
  const dailyTokens = more() < 0.25 ? Math.floor(limit * (0.3 + more())) : undefined;
  const keyed: Plan | undefined =
    more() < 0.35
      ? { monthlyTokens: Math.floor(limit * (0.4 + more())), ...(more() < 0.4 ? { dailyTokens: Math.floor(limit * (0.3 + more())) } : {}) }
      : undefined;
  const momentary = dieAt === undefined ? momentaryLimits(seed, limit) : {};
  const keyPlan = keyed || momentary.key ? { ...keyed, ...momentary.key } : undefined;
  // What was used before they begin counts: `probe` knows only one sum.
  const lateAt = keyed && !momentary.key && dieAt === undefined && more() < 0.4 ? 300 + Math.floor(more() * 1500) : undefined;
  const plan: Plan = {
    monthlyTokens: limit,
    ...(dailyTokens === undefined ? {} : { dailyTokens }),
    ...(maybe(0.3) ? { concurrentStreams: 1 + some(3) } : {}),
    ...(maybe(0.2) ? { monthlyUsd: limit / 1.2e6 } : {}),
    ...(maybe(0.12) ? { requestsPerMinute: 2 + some(12) } : {}),
    ...momentary.user,
  };
  const teamPlan: Plan = { ...(maybe(0.8) ? { monthlyTokens: 2 * limit } : {}), ...momentary.team };
  const hasMinutes = [plan, teamPlan, keyPlan ?? {}].some(isOfMinutes);
  const allNamed = maybe(0.4);
  const isExact = allNamed || maybe(0.5);
  const isKnown = maybe(0.6);
  const isCrashing = dieAt === undefined && maybe(0.5);
  const isSlow = isCrashing && maybe(0.15);
  const isAiling = dieAt === undefined && maybe(0.3);
  const isLosing = dieAt === undefined && maybe(0.4);
  const isRevoking = dieAt === undefined && maybe(0.2);
  const hasRuns = maybe(0.25);
  const problems: string[] = [];
  const calls = new Map<string, Asked>();
  const runsAsked = new Map<string, Asked>();
  const keys = keysModel(() => world.passed, lateAt === undefined ? keyPlan : undefined);
  const runs = runsModel(() => world.passed);
  const weather: Weather = { isAway: false, slowness: 4, loss: 0 };
  /** Since when every process hears everything in time. */
  let fineSince = 0;
  const isFine = () => !weather.isAway && weather.loss === 0 && weather.slowness < slow;
  const mustKnow = (keyId: number) => {
    const since = keys.badSince(keyId);
    return since === undefined || !isFine() ? undefined : Math.max(since, fineSince) + hearing;
  };
  const known = (life: Life, keyId: number) =>
    servings()
      .find((one) => one.life === life)
      ?.rights.knownBad(keyId) ?? mustKnow(keyId);
  const knownBad = isRevoking ? known : undefined;
  if (lateAt !== undefined) world.after(lateAt, () => keys.limit(keyPlan!));
  const isKeyPlanLate = lateAt !== undefined;
  const auditor = new Auditor({
    world,
    books,
    calls,
    plan,
    teamPlan,
    ...(keyPlan && { keyPlan }),
    isKeyPlanLate,
    isExact,
    problems,
    ...(knownBad && { knownBad }),
  });
  const limitsOf = (owner: Owner) => (owner.startsWith('user:') ? plan : owner.startsWith('team:') ? teamPlan : (keyPlan ?? {}));
  const watched = watchMoments({ world, calls, limitsOf, problems });
  const over = (one: Asked) => void (isSpent(one.answer) && auditor.refused(one));
  const witnessed = witnessedTakes({ calls, asked: runsAsked, ended: (one) => auditor.ended(one), over });
  let [points, requests] = [0, 0];
  let said = '';
  const tell = (what: string) => {
    said += `${Math.round(world.passed)} ${what}\n`;
  };
  let isCalm = false;
  let wasSlow = false;

  const survives = () => isCalm || (++points !== dieAt && !(isCrashing && maybe(0.0015)));
  const died = (machine: Machine) => {
    if (machine.isGone) return;
    const isLost = isCrashing && !isCalm && machines.some((other) => other !== machine && !other.isGone) && maybe(0.3);
    if (isCrashing && maybe(0.3)) world.after(0, () => machine.cutPower());
    if (isLost) {
      machine.isGone = true;
      world.after(some(2000), () => void bury(machine));
    } else world.after(some(3000), () => machine.boot());
  };
  /** A machine will not come back: another one brings what it left into the books, and tries again where it cannot. */
  const bury = async (machine: Machine): Promise<void> => {
    for (const life of machine.lives) life.end();
    machine.ails(undefined);
    const other = machines.find(({ isGone }) => !isGone)!;
    try {
      await other.adopt(machine);
      machine.isAdopted = true;
    } catch (error) {
      tell(`the journals of ${machine.parts.name} are not adopted: ${String(error)}`);
      if (String(error).includes('There is no journal')) machine.isAdopted = true;
      else world.after(300, () => void bury(machine));
    }
  };
  const machines = Array.from({ length: 1 + some(some(2) + 2) }, (_, at) => {
    const machine: Machine = new Machine({
      world,
      books,
      weather,
      chance,
      name: `m${at}`,
      workers: maybe(0.35) ? 2 : 0,
      segmentBytes: 2048 + some(12_000),
      plan,
      teamPlan,
      reserveOutput: route.step,
      countTokens: async () => route.prompt - 7,
      model: modelFor(calls, chance, isKnown, (asked, life) => auditor.used(nameOf(asked), asked.keyId, life)),
      keys,
      isRevoking,
      ...(hasRuns && { background: { runs, witnessed } }),
      survives,
      witnessed: (journal, life, of) => watched(auditor.witnessed(journal, life, of), life),
      committed: () => auditor.committed(),
      died,
      log: (life, problem, cause) => {
        tell(`${life.name}: ${problem} ${String(cause)}`);
        if (problem.includes('lost') && !machine.refusedAt) problems.push(problem);
      },
      planted,
    });
    return machine;
  });
  const servings = () => machines.flatMap(({ serving }) => serving);
  const listening = () => servings().filter(({ isListening }) => isListening);
  const wordsFor = (max: number | undefined, changes: Partial<Asked>) => {
    const fate: Ending = (['busy', 'outage', 'cut', 'leaves'] as const)[some(16)] ?? 'whole';
    const pace = isSlow ? 1500 : maybe(0.1) ? 600 : 150;
    const stream = isExact && max === undefined ? false : isSlow || maybe(0.5);
    const userId = changes.userId ?? 1 + some(2);
    return { requestId: `r${++requests}`, userId, keyId: keys.keyOf(userId), max, stream, says: some(route.output), pace, fate, ...changes };
  };
  const asks = (max: number | undefined, changes: Partial<Asked> = {}, isTwice = false): Asked => {
    const words = wordsFor(max, changes);
    const next: Asked | undefined = isTwice
      ? { ...words, step: 1, next: undefined, fate: words.fate === 'leaves' ? 'leaves' : 'whole', says: some(route.output), ...fresh() }
      : undefined;
    const asked: Asked = { ...words, step: 0, next, ...fresh() };
    const steps = next ? [asked, next] : [asked];
    for (const one of steps) calls.set(nameOf(one), one);
    const open = listening();
    const serving = open[some(open.length)];
    if (!serving) return asked;
    asked.answer = 'running';
    void ask(asked, serving, world, (one) => auditor.ended(one)).then(() => steps.forEach(over));
    return asked;
  };
  /** A run in the background. */
  const begins = () => {
    const { fate, ...words } = wordsFor(isExact || maybe(0.5) ? 1 + some(route.output) : undefined, {});
    const asked: Asked = { ...words, fate: fate === 'leaves' ? 'whole' : fate, stream: true, step: 0, next: undefined, ...fresh() };
    runsAsked.set(asked.requestId, asked);
    const open = listening();
    const serving = open[some(open.length)];
    if (serving) void begin(asked, serving).then(() => over(asked));
  };
  /** A user loses a key or is suspended, or may ask again. */
  const revokes = () => {
    const userId = 1 + some(2);
    const what = (['revoke', 'suspend', 'resume'] as const)[some(3)]!;
    tell(`${what} user ${userId}`);
    keys[what](userId);
  };

  // What comes, while anything may go wrong.
  for (const machine of machines) machine.boot();
  await world.pass(300);
  const many = 8 + some(20);
  for (let one = 0; one < many; one++) {
    asks(allNamed || maybe(0.5) ? 1 + some(route.output) : undefined, {}, maybe(0.15));
    // Whole answers without a maximum, all at once: together they would say more than is left.
    if (!allNamed && maybe(0.05)) for (let another = 3 + some(5); another > 0; another--) asks(undefined, { stream: false, says: route.output, fate: 'whole' });
    if (hasRuns && maybe(0.3)) begins();
    if (isRevoking && maybe(0.12)) revokes();
    if (maybe(0.5)) await world.pass(some(maybe(0.1) ? 2000 : 200));
    if (dieAt !== undefined) continue;
    const machine = machines[some(machines.length)]!;
    if (maybe(0.05)) weather.isAway = !weather.isAway;
    if (maybe(0.04)) weather.slowness = weather.slowness > 4 ? 4 : slow;
    wasSlow ||= weather.slowness === slow;
    if (isLosing) weather.loss = maybe(0.5) ? 0.08 : 0;
    if (!isFine()) fineSince = Infinity;
    else if (fineSince === Infinity) fineSince = world.passed + (wasSlow ? 2 * slow : 0); // what is under way still takes its time
    if (maybe(0.02)) machine.skew = (some(3) - 1) * some(20_000);
    if (isAiling && maybe(0.1) && !machine.isGone)
      machine.ails(machine.ailment ? undefined : (['full', 'write', 'sync', 'read', 'create'] as const satisfies readonly DiskFault[])[some(5)]);
    if (isCrashing && maybe(0.05)) machine.lives[some(machine.lives.length)]?.end();
    if (isCrashing && maybe(0.02) && !machine.isGone) machine.cutPower();
    if (maybe(0.02) && !machine.isGone) void machine.stop();
  }

  if (isSlow) {
    await world.pass(3000);
    machines[some(machines.length)]!.serving[0]?.life.end();
  }

  // All is well again, and what was cut off is booked in time.
  isCalm = true;
  for (const userId of [1, 2]) keys.resume(userId);
  Object.assign(weather, { isAway: false, slowness: 4, loss: 0 });
  if (fineSince === Infinity) fineSince = world.passed + (wasSlow ? 2 * slow : 0);
  for (const machine of machines) {
    machine.ails(undefined);
    machine.skew = 0;
  }
  const isBack = (machine: Machine) => (machine.isGone ? machine.isAdopted : machine.holders < 2 && machine.serving.some(({ isListening }) => isListening));
  const isWhole = (machine: Machine) => isBack(machine) && (machine.isGone || machine.shipper?.pendingRows === 0);
  const isRecovered = () => [...calls.values(), ...runsAsked.values()].every(({ answer }) => answer !== 'running') && machines.every(isWhole);
  const waiting = () => runs.entries.filter(({ status }) => isRunning(status)).length;
  // What was under way in bad weather has come or not, and disks have been tried again.
  await world.pass(wasSlow || isAiling ? 2 * slow + 500 : 500);
  await passUntil(() => isRecovered() && waiting() === 0, recovery);
  for (const machine of machines) if (!isBack(machine)) problems.push(`${machine.parts.name} has not recovered`);
  // Only those that wait for a limit have more time: as long as each of them may take.
  await passUntil(() => isRecovered() && waiting() === 0, waiting() * (hasMinutes ? turns.requests : turns.streams));
  await world.pass(500);

  await probe();
  await rest();
  await end();
  auditor.close();
  problems.push(...wrongRuns(runs, runsAsked, calls));
  return { problems, points, story: said, trace: `${points} ${crc32(said + JSON.stringify(books.rows))}` };

  async function passUntil(isSo: () => boolean, most: number): Promise<void> {
    for (const end = world.passed + most; !isSo() && world.passed < end;) await world.pass(100);
  }

  /** What fits exactly is let in, wherever the rest of the plan lies; after that not a token, but for what some have overspent and others still hold. */
  async function probe(): Promise<void> {
    for (const userId of [1, 2]) {
      if (monthOf(world.clock.now() + 10_000) !== monthOf(world.clock.now())) await world.pass(10_000);
      if (hasMinutes) await world.pass(61_000 + permits.useMilliseconds); // those of a holder that died count as late as it may have used them
      const month = monthOf(world.clock.now());
      const day = dayOf(world.clock.now());
      const keyId = keys.keyOf(userId);
      const isOf = (owner: Book) => (row: UsageRow) => monthOf(row.at) === month && booksOf(row).includes(owner);
      const spent = (owner: Book) => books.rows.filter(isOf(owner)).reduce((sum, { planTokens }) => sum + planTokens, 0);
      const usd = plan.monthlyUsd === undefined ? Infinity : Math.floor((plan.monthlyUsd - books.spentOf(`user:${userId}`, month).usd) * 1e6 + 1e-6);
      const owners = [
        { owner: `user:${userId}`, limits: plan },
        { owner: 'team:1', limits: teamPlan },
        { owner: `key:${keyId}`, limits: keyPlan ?? {} },
      ] as const;
      const ofModel = owners.map(({ owner, limits: { modelLimits } }) => (modelLimits?.['m']?.monthlyTokens ?? Infinity) - spent(`${owner}/m`));
      const ofMinute = Math.min(...owners.map(({ limits: { tokensPerMinute = Infinity } }) => tokensPerMinute));
      const left = Math.min(
        limit - spent(`user:${userId}`),
        (plan.dailyTokens ?? Infinity) - spent(`user:${userId}@${day}`),
        (teamPlan.monthlyTokens ?? Infinity) - spent('team:1'),
        (keyPlan?.monthlyTokens ?? Infinity) - spent(`key:${keyId}`),
        (keyPlan?.dailyTokens ?? Infinity) - spent(`key:${keyId}@${day}`),
        ...ofModel,
        usd,
      );
      const fits = Math.min(left - route.prompt, route.output, ofMinute - route.prompt);
      if (fits < 1) continue;
      const whole = asks(fits, { userId, says: route.output, fate: 'whole', stream: false });
      await passUntil(() => whole.answer !== 'running', 3000);
      if (whole.answer !== 'whole') problems.push(`${whole.requestId} fits exactly into the ${left} left and is refused: ${String(whole.answer)}`);
      await world.pass(500); // it is booked: the other user may share the limit
      if (fits < left - route.prompt) continue;
      const more = asks(1, { userId, fate: 'whole' });
      await passUntil(() => more.answer !== 'running', 3000);
      if (isExact && !isSpent(more.answer)) problems.push(`${more.requestId} was let in where nothing is left: ${String(more.answer)}`);
    }
  }

  /** Where nobody needs anything, nothing is held. */
  async function rest(): Promise<void> {
    // Permits that were used are told of when nobody has used the account for a minute.
    if (hasMinutes) await world.pass(140_000);
    for (let turn = 0; turn < 8 && books.outstanding > 1e-6; turn++) {
      books.recall();
      await world.pass(600);
    }
    if (books.outstanding > 1e-6) problems.push(`${books.outstanding} are leased at rest`);
  }

  /** All machines end as they are asked to: nothing is left in their journals. */
  async function end(): Promise<void> {
    for (const machine of machines) {
      if (machine.isGone) continue;
      machine.isGone = true;
      void machine.stop();
      await passUntil(() => !machine.isRunning, 10_000);
      if (machine.isRunning) problems.push(`${machine.parts.name} does not end`);
      const left = machine.disk.paths.filter((path) => path.startsWith('journal/'));
      if (left.length > 0) problems.push(`${left.join(', ')} are left behind`);
    }
  }
}

interface Momentary {
  readonly user?: Plan;
  readonly team?: Plan;
  readonly key?: Plan;
}

/** Limits of a minute, of streams and of a model for one of a user, its team and its key: in half of the lives, of their own chance. @param limit plan tokens of a user's month */
function momentaryLimits(seed: number, limit: number): Momentary {
  const chance = chanceOf(seed ^ 0x5ec0);
  const some = (most: number) => Math.floor(chance() * most);
  if (chance() < 0.5) return {};
  const whose = (['user', 'team', 'key'] as const)[some(3)]!;
  const ofModel = {
    ...(chance() < 0.6 ? { monthlyTokens: Math.floor(limit * (0.4 + chance())) } : {}),
    ...(chance() < 0.4 ? { requestsPerMinute: 3 + some(12) } : {}),
  };
  const limits: Plan = {
    ...(chance() < 0.3 ? { requestsPerMinute: 3 + some(12) } : {}),
    ...(chance() < 0.4 ? { tokensPerMinute: route.output + route.prompt + some(3000) } : {}),
    ...(chance() < 0.3 ? { concurrentStreams: 1 + some(4) } : {}),
    ...(chance() < 0.5 ? { modelLimits: { m: ofModel } } : {}),
  };
  return { [whose]: limits };
}

const isOfMinutes = ({ requestsPerMinute, tokensPerMinute, modelLimits }: Plan) =>
  (requestsPerMinute ?? tokensPerMinute ?? modelLimits?.['m']?.requestsPerMinute) !== undefined;
