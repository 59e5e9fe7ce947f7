/*
 * Minutes of a service some of whose machines fall silent: the way from one of them to the database is gone for a while, one dies for good with its journal,
 * clocks are wrong by years. What has no period, requests of a minute and streams that run, is held against what the world saw at each moment.
 */
import { crc32 } from 'node:zlib';
import type { Owner } from '#core/account';
import { Fault } from '#core/fault';
import { permits } from '#core/lease';
import type { Plan } from '#core/plan';
import { Auditor } from './auditor.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { ask, modelFor, route, type Asked } from './clients.ts';
import { Machine, type Planted } from './machine.ts';
import { watchMoments } from './moments.ts';
import type { Outcome } from './run.ts';
import { keysModel } from './runs-model.ts';
import { chanceOf, World } from './world.ts';

interface Choices {
  readonly planted?: Planted;
  readonly books?: (now: () => number) => BooksModel;
}

const users = [1, 2] as const;
const minute = 60_000;
const day = 86_400_000;
/** How often somebody ends what silent holders hold, in milliseconds. */
const rounds = 30_000;
/** A stream takes no longer, in seconds. */
const streamSeconds = 40;
/** Milliseconds after which nothing without a period is held by one who is gone. */
const ending = (streamSeconds + permits.streamsSilentSeconds) * 1000 + rounds;

/** One life, made of chance alone: then all is well again but for who is dead, and everything without a period must be there. */
export async function fallSilent(seed: number, { planted = {}, books: makeBooks = booksModel }: Choices = {}): Promise<Outcome> {
  const chance = chanceOf(seed);
  const some = (most: number) => Math.floor(chance() * most);
  const maybe = (share: number) => chance() < share;
  const world = new World(Date.UTC(2026, 10, 12, 12));
  const books = makeBooks(() => world.clock.now() / 1000);
  const plan: Plan = { monthlyTokens: 50_000, requestsPerMinute: maybe(0.4) ? 30 + some(20) : 8 + some(8), concurrentStreams: 2 + some(3) };
  const [most, atOnce] = [plan.requestsPerMinute!, plan.concurrentStreams!];
  // Of their own chance, so that a life has otherwise what it had without them.
  const more = chanceOf(seed ^ 0x5eed);
  const placed = placedLimits(plan, more() < 0.3 ? 3000 + Math.floor(more() * 3000) : undefined, more());
  const isLosing = maybe(0.4);
  const problems: string[] = [];
  const calls = new Map<string, Asked>();
  const keys = keysModel(undefined, placed.key);
  const auditor = new Auditor({ world, books, calls, plan: placed.user, teamPlan: {}, keyPlan: placed.key, isExact: true, problems });
  const limitsOf = (owner: Owner) => (owner.startsWith('user:') ? placed.user : owner.startsWith('key:') ? placed.key : {});
  const watched = watchMoments({ world, calls, limitsOf, problems });
  let said = '';
  const tell = (what: string) => {
    said += `${Math.round(world.passed)} ${what}\n`;
  };

  const lost = new Set<Machine>();
  const weathers = new Map<Machine, { isAway: boolean; slowness: number; loss: number }>();
  const machines = Array.from({ length: 2 + some(2) }, (_, at) => {
    const weather = { isAway: false, slowness: 4, loss: 0 };
    const machine: Machine = new Machine({
      world,
      books,
      weather,
      chance,
      name: `m${at}`,
      workers: maybe(0.35) ? 2 : 0,
      segmentBytes: 20_000,
      plan: placed.user,
      teamPlan: {},
      keys,
      streamSeconds,
      reserveOutput: route.step,
      countTokens: async () => route.prompt - 7,
      model: modelFor(calls, chance, true),
      survives: () => true,
      witnessed: (journal, life, of) => watched(auditor.witnessed(journal, life, of), life),
      committed: () => auditor.committed(),
      died: (dead) => {
        if (!dead.isGone) world.after(some(3000), () => dead.boot());
      },
      log: (life, problem, cause) => tell(`${life.name}: ${problem} ${String(cause)}`),
      planted,
    });
    weathers.set(machine, weather);
    return machine;
  });
  const alive = () => machines.filter(({ isGone }) => !isGone);
  const asks = (changes: Partial<Asked> = {}, of: (machine: Machine) => boolean = () => true): Asked => {
    const words = {
      requestId: `r${calls.size}`,
      step: 0,
      next: undefined,
      userId: users[some(2)]!,
      max: 1 + some(route.output),
      stream: maybe(0.6),
      says: some(route.output),
      pace: 1500,
    };
    const userId = changes.userId ?? words.userId;
    const asked: Asked = {
      ...words,
      keyId: keys.keyOf(userId),
      fate: 'whole',
      answer: 'running',
      heard: 0,
      heardFrom: new Set(),
      upstream: [],
      at: 0,
      by: undefined,
      ...changes,
    };
    calls.set(asked.requestId, asked);
    const open = alive()
      .filter(of)
      .flatMap(({ serving }) => serving.filter(({ isListening }) => isListening));
    const serving = open[some(open.length)];
    if (serving) void ask(asked, serving, world, () => auditor.ended(asked));
    else asked.answer = 'nobody';
    return asked;
  };

  const isHeard = (machine: Machine) => !weathers.get(machine)!.isAway;
  /** A user asks those that are heard for all there is, and a moment later the others for what they have kept. */
  const crowd = (userId: number) => {
    const whole = { userId, max: 5, says: 5 };
    const all = (many: number, streams: number, of: (machine: Machine) => boolean) => {
      for (let left = streams; left > 0; left--) asks({ ...whole, stream: true, max: route.output, says: route.output }, of);
      for (let left = many; left > 0; left--) asks({ ...whole, stream: false }, of);
    };
    all(most, atOnce, isHeard);
    world.after(3000, () => all(4, 2, (machine) => !isHeard(machine)));
  };

  const endSilent = () => {
    books.endSilent();
    auditor.committed();
    world.after(rounds, endSilent);
  };
  world.after(rounds, endSilent);
  for (const machine of machines) machine.boot();
  await world.pass(500);

  // Some minutes in which machines fall silent.
  for (const until = world.passed + 2 * minute + some(2 * minute); world.passed < until;) {
    const isCutOff = alive().some((one) => !isHeard(one));
    if (maybe(0.8)) asks({}, maybe(0.8) && alive().some(isHeard) ? isHeard : undefined);
    if (maybe(isCutOff ? 0.06 : 0.01)) crowd(users[some(2)]!);
    await world.pass(some(maybe(0.05) ? 20_000 : 2500));
    const machine = machines[some(machines.length)]!;
    const weather = weathers.get(machine)!;
    if (maybe(weather.isAway ? 0.02 : 0.03)) {
      weather.isAway = !weather.isAway;
      tell(`${machine.parts.name} ${weather.isAway ? 'is cut off' : 'is heard again'}`);
    }
    if (isLosing) weather.loss = maybe(0.5) ? 0.1 : 0;
    if (maybe(0.03)) machine.skew = [0, -40 * 365 * day, 12 * 365 * day, some(2 * day) - day][some(4)]!;
    if (maybe(0.01) && !machine.isGone) for (const life of machine.lives.slice(0, 1)) life.end();
    if (maybe(0.02) && alive().length > 1 && !machine.isGone) {
      machine.isGone = true;
      lost.add(machine);
      for (const life of machine.lives) life.end();
      tell(`${machine.parts.name} is gone for good`);
    }
  }

  // All is well again, but for the dead.
  for (const machine of machines) {
    Object.assign(weathers.get(machine)!, { isAway: false, loss: 0 });
    machine.skew = 0;
  }
  for (const userId of users) crowd(userId);
  await world.pass(ending + minute);
  for (const userId of users) await probe(userId);

  // An administrator writes off what the dead had leased for the month.
  for (const machine of lost) for (const path of machine.disk.paths) if (path.startsWith('journal/')) books.close(path.split('/')[1]!);
  for (let turn = 0; turn < 3; turn++) {
    books.recall();
    await world.pass(1500);
  }
  // Permits that were used are told of with the next message, whenever that is.
  for (const { owner, kind, month, leased } of books.balances)
    if (leased > 1e-6 && kind !== 'requests' && kind !== 'tokens') problems.push(`${leased} of ${owner} ${kind} ${month} are leased at rest`);
  for (const machine of alive()) void machine.stop();
  for (const machine of machines) machine.isGone = true;
  await world.pass(10_000);
  auditor.close();
  const unbooked = new Set([...calls.values()].filter(({ by }) => by && lost.has(by.machine)).map(({ requestId }) => `${requestId} began and is not booked`));
  return {
    problems: problems.filter((problem) => !unbooked.has(problem)),
    points: calls.size,
    story: said,
    trace: `${calls.size} ${crc32(said + JSON.stringify(books.rows))}`,
  };

  /** All streams at a time and all requests of a minute are to be had, and none beyond them. */
  async function probe(userId: number): Promise<void> {
    const whole = { userId, fate: 'whole', max: 5, says: 100 } as const;
    const streams = Array.from({ length: atOnce }, () => asks({ ...whole, stream: true, max: route.output, says: route.output }));
    await world.pass(3000);
    const one = asks({ ...whole, stream: true });
    await world.pass(3000);
    const rest: Asked[] = [];
    for (let left = most - atOnce; left > 0; left--) {
      const next = asks({ ...whole, stream: false });
      rest.push(next);
      for (let waited = 0; next.answer === 'running' && waited < 3000; waited += 50) await world.pass(50);
    }
    const more = asks({ ...whole, stream: false });
    await world.pass(20_000);
    const refused = [...streams, ...rest].filter(({ answer }) => answer !== 'whole');
    for (const { requestId, answer } of refused) problems.push(`${requestId} fits and is refused: ${String(answer)}`);
    for (const { requestId, answer } of [one, more])
      if (!(answer instanceof Fault && answer.code === 'rate-limited')) problems.push(`${requestId} was let in where nothing is left: ${String(answer)}`);
  }
}

/** The same limits, but not always those of users: streams, and requests of a minute, may be their keys' instead, or requests those of the model they ask. */
function placedLimits(
  { requestsPerMinute, ...limits }: Plan,
  tokensPerMinute: number | undefined,
  chance: number,
): { readonly user: Plan; readonly key: Plan } {
  const all: Plan = { ...limits, ...(tokensPerMinute !== undefined && { tokensPerMinute }) };
  const { concurrentStreams, ...others } = all;
  if (chance < 0.6) return { user: { ...all, requestsPerMinute: requestsPerMinute! }, key: {} };
  if (chance < 0.8) return { user: others, key: { requestsPerMinute: requestsPerMinute!, concurrentStreams: concurrentStreams! } };
  return { user: { ...all, modelLimits: { m: { requestsPerMinute: requestsPerMinute! } } }, key: {} };
}
