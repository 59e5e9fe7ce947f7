/* A machine of the service: a disk, and the processes on it, put together as src/books.ts, src/parent.ts and src/worker.ts do it. */
import { openChannel } from '#kit/ipc/channel';
import type { Account } from '#core/account';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Contact, LeaseSource, PermitKind } from '#core/lease';
import type { CountTokens } from '#core/measure';
import type { Plan } from '#core/plan';
import type { Model } from '#core/target';
import { openHealth } from '../../src/gateway/routing/health.ts';
import { ResponseCache } from '#gateway/rules/response-cache';
import { openPipeline } from '../../src/gateway/pipeline.ts';
import { adoptJournals } from '../../src/ledger/shipping/adopt.ts';
import { keepContact, reportedContact } from '../../src/ledger/admission/contact.ts';
import type { Disk } from '../../src/ledger/journal/disk.ts';
import { openLedger, type Ledger } from '../../src/ledger/index.ts';
import { openJournal, type CallJournal, type Journal } from '../../src/ledger/journal/journal.ts';
import { leaseAfterShipping } from '../../src/ledger/shipping/lease-after-shipping.ts';
import { openShipper, type Shipper } from '../../src/ledger/shipping/shipper.ts';
import { subLeases } from '../../src/ledger/sharing/sub-leases.ts';
import { refusals, type ParentAnswers, type Reached, type WorkerAnswers } from '../../src/process/ipc.ts';
import { diskError, testDisk, type TestDisk } from '../support/fakes/disk.ts';
import { lineTo, wayTo, wireBetween, type Line, type LineDeps } from './network.ts';
import { allRights, rightsOf, type OwnRights } from './rights.ts';
import type { KeysModel, RunsModel } from './runs-model.ts';
import { runsOf, type OwnRuns } from './runs.ts';
import { Died, Life } from './world.ts';

/** What a life of the service may be given in place of the real thing, to see that the auditor bites. */
export interface Planted {
  readonly disk?: (disk: Disk) => Disk;
  /** What the ledger writes to, or the way there. */
  readonly journal?: (journal: CallJournal) => CallJournal;
  readonly line?: (line: Line) => Line;
  /** Of a worker, over its channel. */
  readonly shared?: (source: LeaseSource) => LeaseSource;
  readonly ledger?: (ledger: Ledger) => Ledger;
  readonly model?: (model: Model) => Model;
  readonly rights?: (rights: OwnRights) => OwnRights;
}

export interface MachineDeps extends LineDeps {
  /** This many processes that answer, led by another one; 0: one does it all. */
  readonly workers: number;
  readonly name: string;
  readonly segmentBytes: number;
  readonly plan: Plan;
  readonly teamPlan: Plan;
  readonly reserveOutput: number;
  /** How long a stream may take: with it the machine says that it lives, and its permits end where it does not. */
  readonly streamSeconds?: number;
  readonly countTokens: CountTokens;
  /** The model of a process: what its targets are asked is asked by that one. */
  readonly model: (life: Life) => Model;
  readonly keys: KeysModel;
  /** Do users lose what they may do? */
  readonly isRevoking?: boolean;
  /** Absent: nothing runs in the background. */
  readonly background?: {
    readonly runs: RunsModel;
    /** Sees what is asked of the gateway each time a run is taken up. */
    readonly witnessed: (generate: Generate, serving: Serving) => Generate;
  };
  /** Asked at each point at which a process may die. */
  readonly survives: (life: Life) => boolean;
  /** Sees what is written to a journal. */
  readonly witnessed: (journal: CallJournal, life: Life, machine: Machine) => CallJournal;
  /** Of the machine's first process: the machine is without one. */
  readonly died: (machine: Machine) => void;
  readonly log: (life: Life, problem: string, cause: unknown) => void;
  readonly planted: Planted;
}

/** A process that answers clients. */
export interface Serving {
  readonly life: Life;
  readonly ledger: Ledger;
  readonly generate: Generate;
  /** The calls that run here, and what aborts them. */
  readonly running: Set<AbortController>;
  readonly machine: Machine;
  readonly rights: OwnRights;
  runs: OwnRuns | undefined;
  isListening: boolean;
}

/** What ails a disk: a kind of act fails, or only little more can be written. */
export type DiskFault = 'full' | 'write' | 'sync' | 'read' | 'create';

const folder = 'journal';
const orphanMilliseconds = 800;

export class Machine {
  readonly parts: MachineDeps;
  /** Milliseconds by which its clock on the wall is wrong. */
  skew = 0;
  /** It is gone for good; its disk is not, until another machine has what is on it. */
  isGone = false;
  isAdopted = false;
  /** When its power was cut. */
  readonly cuts: number[] = [];
  /** Its disk last refused something at this time. */
  refusedAt = -Infinity;
  ailment: DiskFault | undefined;
  serving: Serving[] = [];
  shipper: Shipper | undefined;
  disk: TestDisk = testDisk();
  readonly #lives = new Set<Life>();
  #boots = 0;
  #stop: (() => Promise<void>) | undefined;

  constructor(parts: MachineDeps) {
    this.parts = parts;
  }

  get isRunning(): boolean {
    return this.#lives.size > 0;
  }

  /** Those whose journals lie on its disk. */
  get holders(): number {
    return new Set(this.disk.paths.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.split('/')[1])).size;
  }

  get lives(): readonly Life[] {
    return [...this.#lives];
  }

  /** Starts its first process, which starts the others. */
  boot(): void {
    const life = this.#live(`${this.parts.name}.${++this.#boots}`);
    life.onEnd(() => {
      this.shipper = undefined;
      this.#stop = undefined;
      this.parts.died(this);
    });
    void this.#serve(life);
  }

  /** All in it stops, and what was not synced may be lost. */
  cutPower(): void {
    this.cuts.push(this.parts.world.passed);
    for (const life of this.#lives) life.end();
    this.disk = this.disk.powerCut(this.parts.chance);
  }

  /** Ends as it is asked to: what runs gets a moment, then all is brought into the books. */
  async stop(): Promise<void> {
    await this.#stop?.();
  }

  ails(ailment: DiskFault | undefined): void {
    this.ailment = ailment;
    const used = this.disk.paths.reduce((sum, path) => sum + this.disk.bytes(path).length, 0);
    this.disk.capacity = ailment === 'full' ? used + Math.floor(this.parts.chance() * 2 * this.parts.segmentBytes) : Infinity;
    if (ailment) this.refusedAt = Infinity;
    else this.refusedAt = this.parts.world.passed;
  }

  /** Brings what another machine left into the books. */
  async adopt(other: Machine): Promise<void> {
    const life = this.#live(`${this.parts.name}.adopts`);
    const { shipped } = this.#line(life);
    const parts = { sink: shipped, disk: other.#view(life), folder, refused: 'refused.jsonl', log: this.#log(life).log };
    const claim = () => {
      if (other.isRunning) throw new Fault('conflict', 'Its server runs.');
      return () => {};
    };
    try {
      await Promise.race([adoptJournals(parts, claim), new Promise<never>((_, reject) => life.onEnd(() => reject(new Died())))]);
    } finally {
      life.end();
    }
  }

  async #serve(life: Life): Promise<void> {
    const line = this.#line(life);
    const disk = this.#view(life);
    const holder = await this.#entered(life, line);
    if (this.parts.workers > 0) this.#lead(life, line, disk, holder);
    else await this.#answerAlone(life, line, disk, holder);
  }

  async #answerAlone(life: Life, line: Line, disk: Disk, holder: string): Promise<void> {
    const journal = await this.#journal(life, disk, holder, 'only');
    const shipper = this.#ship(life, line, disk, holder, journal);
    const serving = this.#open(life, this.#source(life, line, holder, shipper), journal);
    this.#stop = async () => {
      await close(serving, 500);
      await journal.close();
      await shipper.flush(5000);
      life.end();
    };
  }

  #lead(life: Life, line: Line, disk: Disk, holder: string): void {
    const { chance, world } = this.parts;
    const shipper = this.#ship(life, line, disk, holder);
    const source = this.#source(life, line, holder, shipper);
    const leases = subLeases({
      source,
      settledOf: (worker) => shipper.adoptWriter(worker),
      takeSettled: () => shipper.takeSettled().map(({ writer: worker, ...said }) => ({ worker, ...said })),
      longestSeconds: () => 600,
      clock: life.clock,
      log: this.#log(life).log,
    });
    const workers = new Map<Life, (grace: number) => Promise<void>>();
    const tellers = new Map<Life, (lapsed: readonly PermitKind[]) => void>();
    source.contact?.onReached((lapsed) => tellers.forEach((tell) => tell(lapsed)));
    let named = 0;
    let isClosing = false;

    const fork = () => {
      const name = String(++named);
      const worker = this.#live(`${life.name}.${name}`);
      const [here, there] = wireBetween(life, worker, world, chance);
      let share: LeaseSource | undefined;
      const own = () => {
        if (share) return share;
        share = leases.open(name);
        share.onRecall((account) => channel.tell('recall', account));
        tell([]);
        return share;
      };
      const tell = (lapsed: readonly PermitKind[]) => {
        if (source.contact) channel.tell('reached', { goodMilliseconds: source.contact.goodUntil - life.clock.monotonic(), lapsed });
      };
      const channel = openChannel<WorkerAnswers>(
        here,
        {
          lease: (asks: Parameters<LeaseSource['lease']>[0]) => own().lease(asks),
          giveBack: (returns: Parameters<LeaseSource['giveBack']>[0]) => own().giveBack(returns),
        },
        refusals,
      );
      workers.set(worker, (grace) => channel.ask('drain', grace));
      tellers.set(worker, tell);
      // That a process has ended is heard from the kernel, and what it said before may come later.
      worker.onEnd(() =>
        life.clock.after(chance() * 3, () => {
          workers.delete(worker);
          tellers.delete(worker);
          leases.ended(name);
          if (!isClosing) life.clock.after(chance() * 300, () => !isClosing && fork());
        }),
      );
      void this.#work(worker, there, holder, name);
    };
    for (let at = 0; at < this.parts.workers; at++) fork();

    this.#stop = async () => {
      isClosing = true;
      for (const drain of workers.values()) void drain(0.5).catch(() => undefined);
      for (let waited = 0; workers.size > 0 && waited < 2000; waited += 20) await life.clock.sleep(20);
      for (const worker of workers.keys()) worker.end();
      while (workers.size > 0) await life.clock.sleep(20);
      await leases.close();
      await shipper.flush(5000);
      life.end();
    };
  }

  async #work(life: Life, wire: ReturnType<typeof wireBetween>[1], holder: string, writer: string): Promise<void> {
    const recalled = new Set<(account: Account) => void>();
    const open: { serving?: Serving; journal?: Journal } = {};
    const drain = async (grace: number) => {
      if (open.serving) await close(open.serving, grace * 1000);
      await open.journal?.close();
      life.clock.after(0, () => life.end()); // the answer goes out first
    };
    const contact = this.parts.streamSeconds === undefined ? undefined : reportedContact(life.clock);
    const parent = openChannel<ParentAnswers>(
      wire,
      {
        recall: (account: Account) => recalled.forEach((listen) => listen(account)),
        reached: ({ goodMilliseconds, lapsed }: Reached) => contact?.reported(goodMilliseconds, lapsed),
        drain,
      },
      refusals,
    );
    wire.onClose(() => {
      life.clock.after(orphanMilliseconds, () => life.end());
      void drain(0);
    });
    const source: LeaseSource = {
      lease: (asks) => parent.ask('lease', asks),
      giveBack: (returns) => parent.ask('giveBack', returns),
      onRecall: (listen) => void recalled.add(listen),
      ...(contact && { contact }),
    };
    open.journal = await this.#journal(life, this.#view(life), holder, writer);
    open.serving = this.#open(life, this.parts.planted.shared?.(source) ?? source, open.journal);
  }

  /** Where a holder gets its leases: with word of whether the database knows that it lives, where that matters. */
  #source(life: Life, line: Line, holder: string, shipper: Shipper): LeaseSource {
    const source = leaseAfterShipping(line.source(holder), shipper, life.clock);
    const { streamSeconds } = this.parts;
    if (streamSeconds === undefined) return source;
    const parts = { seen: (seconds: number) => line.seen(holder, seconds), streamSeconds: () => streamSeconds, clock: life.clock, lost: () => life.end() };
    const contact: Contact = keepContact(parts, life.clock.monotonic());
    return { ...source, contact };
  }

  async #entered(life: Life, line: Line): Promise<string> {
    for (;;)
      try {
        return await line.enter();
      } catch {
        await life.clock.sleep(300);
      }
  }

  #journal(life: Life, disk: Disk, holder: string, writer: string): Promise<Journal> {
    const { segmentBytes } = this.parts;
    const atTurnEnd = (run: () => void) => void life.clock.after(0, run);
    const parts = { disk, clock: life.clock, folder: `${folder}/${holder}`, writer, segmentBytes, atTurnEnd };
    return openJournal({ ...parts, minFreeBytes: () => 2 * segmentBytes, ...this.#log(life) });
  }

  #ship(life: Life, line: Line, disk: Disk, holder: string, own?: Journal): Shipper {
    this.shipper = openShipper({
      sink: line.shipped,
      disk,
      clock: life.clock,
      folder,
      holder,
      orphanMilliseconds: orphanMilliseconds + 200,
      ...(own ? { own } : {}),
      ...this.#log(life),
    });
    return this.shipper;
  }

  #open(life: Life, source: LeaseSource, journal: Journal): Serving {
    const { plan, teamPlan, reserveOutput, countTokens, chance, planted, keys, weather, background, isRevoking = false } = this.parts;
    const { clock } = life;
    const written = this.parts.witnessed(planted.journal?.(journal) ?? journal, life, this);
    const made = openLedger({
      source,
      journal: written,
      planOf: () => plan,
      teamPlan: () => teamPlan,
      reserveOutput: () => reserveOutput,
      countTokens,
      clock,
      log: this.#log(life).log,
    });
    const ledger = planted.ledger?.(made) ?? made;
    const model = planted.model?.(this.parts.model(life)) ?? this.parts.model(life);
    const answers = new ResponseCache(clock);
    const { log } = this.#log(life);
    const over = wayTo(life, { ...this.parts, committed: () => {} });
    const { chatcompat: generate, affords } = openPipeline({
      models: () => ({ find: () => model, list: () => [model], hasProviders: true, embedding: undefined }),
      ledger,
      health: openHealth(() => ({ cooldownSeconds: 1, cooldownMaxSeconds: 60 }), clock, chance),
      routing: () => ({ retryBudget: 0.2 }),
      waits: () => ({ hangSeconds: { stream: 10, whole: 30 }, firstByteSeconds: 60, streamIdleSeconds: 60 }),
      clock,
      guards: () => ({ of: () => undefined }),
      answers: () => answers,
      ttlOf: () => undefined,
      web: { engine: () => undefined, failed: () => {}, fetcher: { fetch: () => Promise.reject(new Error('No page is read here.')) } },
      countTokens: () => Promise.resolve(0),
      schemas: { against: () => () => true },
      tools: {
        permits: () => {},
        ofServer: () => Promise.resolve(undefined),
        offered: () => Promise.resolve({ tools: [], unknown: [] }),
        call: () => Promise.reject(new Error('No tool is called here.')),
      },
      prompts: { most: 0, tell: () => {} },
    });
    const known = isRevoking ? rightsOf({ life, over, keys, isAway: () => weather.isAway, chance, log }) : allRights(keys);
    const rights = planted.rights?.(known) ?? known;
    const serving: Serving = { life, ledger, generate, running: new Set(), machine: this, rights, runs: undefined, isListening: true };
    if (background)
      serving.runs = runsOf({
        life,
        over,
        chance,
        log,
        affords,
        model: background.runs,
        rights: rights.rights,
        generate: background.witnessed(generate, serving),
      });
    this.serving.push(serving);
    life.onEnd(() => (this.serving = this.serving.filter((one) => one !== serving)));
    return serving;
  }

  #live(name: string): Life {
    const life = new Life(name, this.parts.world, () => this.skew, this.parts.survives);
    this.#lives.add(life);
    life.onEnd(() => {
      this.#lives.delete(life);
      this.parts.log(life, 'has ended.', '');
    });
    return life;
  }

  #line(life: Life): Line {
    const line = lineTo(life, this.parts);
    return this.parts.planted.line?.(line) ?? line;
  }

  #log(life: Life) {
    return { log: (problem: string, cause: unknown) => life.isAlive && this.parts.log(life, problem, cause), mended: () => {} };
  }

  /** The disk as a process sees it: it may die at each act, before or in the middle of it, and after each write. */
  #view(life: Life): Disk {
    const { chance } = this.parts;
    const view = this.disk.another();
    life.onEnd(() => void view.processDied());
    view.before = (act) => {
      if (!life.point()) {
        if (act === 'write') return Math.floor(chance() * 1000);
        throw new Died();
      }
      if (this.ailment === act && chance() < 0.5) throw diskError('EIO');
      return undefined;
    };
    const disk: Disk = {
      ...view,
      create(path) {
        const file = view.create(path);
        return {
          ...file,
          write(bytes, from, to) {
            file.write(bytes, from, to);
            if (!life.point()) throw new Died();
          },
          async sync() {
            await life.clock.sleep(chance() * 20);
            await file.sync();
          },
        };
      },
    };
    return this.parts.planted.disk?.(disk) ?? disk;
  }
}

/** No call comes in any more; those that run have this many milliseconds. */
async function close(serving: Serving, milliseconds: number): Promise<void> {
  const { life, running, ledger, rights, runs } = serving;
  serving.isListening = false;
  for (let waited = 0; running.size > 0 && waited < milliseconds; waited += 50) await life.clock.sleep(50);
  for (const call of running) call.abort(new Fault('overloaded', 'The server is shutting down.', { retryAfter: 1 }));
  // One that waits for the database to grow hears of it when that has answered.
  for (let waited = 0; running.size > 0 && waited < 5000; waited += 10) await life.clock.sleep(10);
  rights.rights.close();
  await runs?.close();
  await ledger.close();
}
