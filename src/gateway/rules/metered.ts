import { Cancelled } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import { threeDecimals } from '#kit/async/three-decimals';
import { TokenEstimate } from '#kit/tokens/estimate';
import { isConversation, type RoutedCall } from '#core/routed-call';
import { noteMilliseconds, speaks, type Events, type FinishReason, type GenerateEvent, type Started, type Usage } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import { inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import type { Context } from '#core/context';
import type { Forwarded } from '#core/passthrough';
import { costOf, costOfSearches, hasCountRates, tokensOfCounts, planTokensOf, type Counts } from '#core/price';
import { priceAt } from '#core/target';
import { hiddenThoughts } from '#core/thinking';
import type { End, UsageRow } from '#core/usage-row';
import type { Ledger } from '#ledger/index';
import { sumOf } from '#core/usage';
import { unreserved, type AdmittedCall } from './admitted.ts';

/** Meters the answer and settles the call once, however it ends. The last event is yielded, and a whole answer returned, only after that. */
export function metered(clock: Clock, inner: Generate<AdmittedCall>): Generate<AdmittedCall> {
  return inBothVerbs(
    async function* (call, context) {
      const meter = new Meter(call, context, clock);
      await call.reservation.begun();
      try {
        context.signal.throwIfAborted();
        for await (const events of inner(meter.counting(call), context)) {
          const counted: GenerateEvent[] = [];
          for (const event of events) {
            counted.push(meter.take(event));
            if (call.stream && !context.signal.aborted && meter.isShort() && !(await meter.grows())) {
              yield [...counted, ...meter.cutShort()];
              meter.ended = { end: 'quota-ended', status: 200 };
              return;
            }
          }
          yield counted;
        }
        meter.completed();
        const last = meter.unreported();
        if (last.length > 0) yield last;
      } catch (error) {
        meter.failed(error);
        throw error;
      } finally {
        await meter.settle(); // without an end, the reader of the answer has stopped
      }
    },
    async (call, context) => {
      const meter = new Meter(call, context, clock);
      await call.reservation.begun();
      try {
        context.signal.throwIfAborted();
        const events = await wholeAnswer(inner, call, context);
        const counted = events.map((event) => meter.take(event));
        meter.completed();
        return [...counted, ...meter.unreported()];
      } catch (error) {
        meter.failed(error);
        throw error;
      } finally {
        await meter.settle();
      }
    },
  );
}

/** Books a call that a check denied before it was made: no quota, one row. @throws Fault `overloaded` while nothing can be booked */
export async function recordRefusal(ledger: Ledger, clock: Clock, call: RoutedCall, context: Context, refusal: Fault): Promise<void> {
  const free = unreserved(ledger, call, context);
  await free.reservation.settle(new Meter(free, context, clock).row(refusedEnd(refusal)));
}

interface Ended {
  readonly end: End;
  readonly status: number;
  /** A check ended it, not a model. */
  readonly isByCheck?: true;
}

class Meter {
  readonly #call: AdmittedCall;
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #startedAt: number;
  /** Index into the attempts of the request: those before it belong to other steps. */
  readonly #firstAttempt: number;
  #firstAt: number | undefined;
  /** Tokens that were counted by the model, or where the answer was forwarded, and of them those of thoughts. */
  #tokens = 0;
  #thoughtTokens = 0;
  /** What else was said and thought. */
  readonly #said = new TokenEstimate();
  readonly #thought = new TokenEstimate();
  /** Texts of a whole answer, which are measured only where its provider counts nothing. */
  readonly #unread: string[] = [];
  #forwarded: Forwarded | undefined;
  /** Whether there was a sign of thoughts. */
  #thinks = false;
  #usage: Usage | undefined;
  /** The amounts that are not counted in tokens. */
  #counts: Counts | undefined;
  /** The provider's usage so far of an answer in progress, or of one that broke off. */
  #counted: Usage | undefined;
  #model = '';
  readonly #reasons: FinishReason[] = [];
  spoke = false;
  /** The call waits for the ledger to extend its reservation. */
  isStopped = false;
  /** Absent: the answer is not over. */
  ended: Ended | undefined;
  #notedAt: number;

  constructor(call: AdmittedCall, context: Context, clock: Clock) {
    this.#call = call;
    this.#context = context;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#firstAttempt = context.progress.attempts.length;
    this.#notedAt = this.#startedAt;
    this.#counts = isConversation(call) ? undefined : call.counts;
    call.reservation.open.meter = this;
  }

  /** The call, with what is forwarded of its answer counted here: to wake every rule for it would leave some KB of each open stream every two seconds. */
  counting(call: AdmittedCall): AdmittedCall {
    if (!isConversation(call) || !call.passthrough || !call.stream) return call;
    return { ...call, passthrough: { ...call.passthrough, noted: (tokens) => this.#passes(tokens), forwards: (forwarded) => (this.#forwarded = forwarded) } };
  }

  /** Its reservation need not grow: only calls that are bounded or fixed are admitted with passthrough. */
  #passes(tokens: number): void {
    this.#tokens += tokens;
    this.#speaks();
  }

  /** Counts an event. @returns the event to pass on: `started` with the limit that was set, `usage` with plausible counts */
  take(event: GenerateEvent): GenerateEvent {
    switch (event.type) {
      case 'started':
        this.#model = event.model;
        if (event.usage && this.#isPossible(event.usage)) this.#counted = event.usage;
        return this.#withBound(event);
      case 'thought':
        this.#thinks = true;
        if (event.tokens === undefined) this.#thought.add(event.text);
        else {
          this.#tokens += event.tokens;
          this.#thoughtTokens += event.tokens;
        }
        break;
      case 'text':
        if (event.tokens === undefined) this.#hears(event.text);
        else this.#tokens += event.tokens;
        break;
      case 'refusal':
        this.#hears(event.text);
        break;
      case 'tool-call':
        if (event.tokens !== undefined) this.#tokens += event.tokens;
        else {
          if (event.name !== undefined) this.#hears(event.name);
          this.#hears(event.json);
        }
        break;
      case 'passed':
        this.#tokens += event.tokens;
        if (event.tokens === 0 && event.text !== undefined) this.#hears(event.text); // the provider counts them: its count may be impossible
        if (event.thoughts) this.#thinks = true;
        if (event.counts) this.#counts = plausible(event.counts, this.#counts);
        break;
      case 'part':
        break;
      case 'finished':
        this.#reasons[event.candidate] = event.reason;
        break;
      case 'usage':
        if (event.usage.source === 'partial') {
          if (this.#isPossible(event.usage)) this.#counted = event.usage;
          return event;
        }
        this.#usage = this.#believed(event.usage);
        return this.#usage === event.usage ? event : { ...event, usage: this.#usage };
      default:
        event satisfies never;
    }
    if (speaks(event)) this.#speaks();
    return event;
  }

  #hears(text: string): void {
    if (this.#call.stream) this.#said.add(text);
    else this.#unread.push(text);
  }

  #speaks(): void {
    const now = this.#clock.monotonic();
    if (!this.spoke) {
      this.spoke = true;
      this.#firstAt = now;
    }
    if (now - this.#notedAt < noteMilliseconds) return;
    this.#notedAt = now;
    this.#call.reservation.spoke(this.#output());
  }

  /** Whether the answer has nearly used its reservation. */
  isShort(): boolean {
    return this.#usage === undefined && this.#output() > this.#call.reservation.comfort;
  }

  /** Extends the reservation. @returns false if no quota is left. @throws Fault `overloaded` while that is unknown */
  grows(): boolean | Promise<boolean> {
    const grown = this.#call.reservation.grow(this.#output());
    if (typeof grown === 'boolean') return grown;
    this.isStopped = true; // until it continues, the provider is not the cause of an end
    return grown.then((more) => {
      this.isStopped = false;
      return more;
    });
  }

  /** The events that end an answer when no quota is left. */
  cutShort(): readonly GenerateEvent[] {
    const candidates = this.#call.sampling.candidates ?? 1;
    this.#usage = this.#estimate('partial');
    return [
      ...Array.from({ length: candidates }, (_, candidate) => ({ type: 'finished' as const, candidate, reason: 'length' as const, raw: 'quota' })),
      { type: 'usage', usage: this.#usage },
    ];
  }

  completed(): void {
    const { signal } = this.#context;
    this.ended = hasLeft(signal) ? leftFor(signal) : { end: this.#goodEnd(), status: 200 };
  }

  /** The usage of a complete answer as it is booked, where its provider reported none. */
  unreported(): Events {
    if (this.#usage || this.ended?.status !== 200 || !isConversation(this.#call) || reviewedEnd(this.#context)) return [];
    this.#usage = this.#estimate('estimated');
    return [{ type: 'usage', usage: this.#usage }];
  }

  failed(error: unknown): void {
    const { signal, told = asItIs } = this.#context;
    this.ended = this.isStopped && !signal.aborted ? { end: 'cancelled', status: faultOf(error).status } : badEnd(told(error), signal, this.spoke);
  }

  /** Books the call. @returns resolves when it is written */
  settle(): Promise<void> | undefined {
    const { signal } = this.#context;
    this.#tokens += this.#forwarded?.untold() ?? 0;
    return this.#call.reservation.settle(this.row(reviewedEnd(this.#context) ?? this.ended ?? badEnd(undefined, signal, this.spoke)));
  }

  #goodEnd(): End {
    if (this.#reasons.includes('length')) return 'length';
    if (this.#reasons.includes('tool')) return 'tool';
    return this.#reasons.includes('refused') ? 'refused' : 'completed';
  }

  row({ end, status, isByCheck }: Ended): UsageRow {
    const { route } = this.#call;
    const { requestId, step, caller, app, face, tags, progress, signal } = this.#context;
    const attempts = this.#firstAttempt === 0 ? progress.attempts : progress.attempts.slice(this.#firstAttempt);
    const last = attempts.at(-1);
    const whole = end === 'completed' || end === 'length' || end === 'tool' || (end === 'refused' && !isByCheck);
    // A call that is cancelled while a provider works on it is paid for, like one whose client left.
    const isCancelled = end === 'cancelled' && signal.aborted && last !== undefined && last.fault === undefined;
    const isPaid = this.spoke || whole || (end === 'client-left' && last !== undefined) || isCancelled || this.#counted !== undefined;
    const usage = this.#usage ?? (isPaid ? this.#estimate(whole ? 'estimated' : 'partial') : { input: 0, output: 0, source: 'partial' });
    const now = this.#clock.monotonic();
    const planTokens = planTokensOf(route.rate, usage.input, usage.output);
    progress.booked = progress.booked ? sumOf(progress.booked, usage) : usage;
    progress.planTokens = (progress.planTokens ?? 0) + planTokens;
    const costUsd = this.#cost(usage, isPaid || this.#usage ? this.#counts : undefined);
    if (costUsd !== null) progress.costUsd = (progress.costUsd ?? 0) + costUsd;
    return {
      requestId,
      step,
      at: this.#call.reservation.at,
      userId: caller.userId,
      teamIds: caller.teamIds,
      keyId: caller.keyId,
      app,
      face,
      tags,
      model: this.#call.model,
      servedModel: this.#model,
      route: route.name === this.#call.model ? undefined : route.name,
      charges: this.#call.reservation.charges,
      provider: last?.provider ?? '',
      region: last?.region ?? '',
      attempts,
      status,
      end,
      inputTokens: usage.input,
      outputTokens: usage.output,
      cachedTokens: usage.cached ?? 0,
      cacheWriteTokens: usage.cacheWrite ?? 0,
      cacheWrite1hTokens: usage.cacheWrite1h ?? 0,
      thoughtTokens: usage.thought ?? 0,
      provenance: progress.cache === 'hit' ? 'cached' : usage.source,
      balance: this.#context.balance ?? 'inference',
      planTokens,
      costUsd,
      queueMs: threeDecimals(this.#call.reservation.waited),
      firstTokenMs: this.#firstAt === undefined ? null : threeDecimals(this.#firstAt - this.#startedAt),
      totalMs: threeDecimals(now - this.#startedAt),
    };
  }

  #withBound(event: Started): Started {
    const { bound } = this.#call.reservation;
    if (bound === undefined || !isConversation(this.#call)) return event;
    return {
      ...event,
      ignored: [...event.ignored, `max_tokens: none was given; limited to ${bound} tokens, what your limits allow this request now.`],
    };
  }

  /** The usage that a provider reports, or an estimate of what it did not count. */
  #believed(usage: Usage): Usage {
    if (!this.#isPossible(usage)) return this.#estimate('estimated');
    if (usage.output > 0 || this.#output() === 0 || !isConversation(this.#call)) return usage;
    if (usage.input > 0) this.#counted = usage; // its other counts may be right
    return this.#estimate('estimated');
  }

  /** Plausibility check: some providers report negative or impossibly large counts. */
  #isPossible({ input, output, aside = 0, cached = 0, thought = 0, searches = 0 }: Usage): boolean {
    const { sampling, route, reservation } = this.#call;
    // A provider that does not know the field of the maximum exceeds the bound that we set, and bills the excess.
    let maxTokens = reservation.bound === undefined ? sampling.maxTokens : undefined;
    if (maxTokens === 0 && isConversation(this.#call)) maxTokens = 1; // who only fills a cache may count the token at which it stopped
    // A task may be many prompts. A context window may be larger than configured: by a client header, or at one of several targets.
    const context = Math.min((isConversation(this.#call) ? route.limits.context : undefined) ?? Infinity, longestContext / generous) * generous;
    const most = (sampling.candidates ?? 1) * Math.min(context, (maxTokens ?? Infinity) * generous);
    const fits = isCount(input, context) && isCount(aside, context) && isCount(cached, context);
    return fits && isCount(output - aside, most) && isCount(thought, most) && isCount(searches, mostSearches);
  }

  /** The provider's own counts where there are any, and the rest estimated from the answer. */
  #estimate(source: 'estimated' | 'partial'): Usage {
    const hidden = source === 'partial' && this.#counted?.thought === undefined ? this.#hidden() : 0;
    const thought = Math.max(this.#counted?.thought ?? 0, hidden > 0 ? hidden + this.#thoughts() : 0);
    const output = Math.max(this.#counted?.output ?? 0, this.#output() + hidden);
    const input = this.#counted?.input || this.#call.reservation.promptTokens; // some providers begin with a count of 0
    const rate = this.#counted?.rate ?? (isConversation(this.#call) ? this.#call.tierRate?.(this.#model) : undefined);
    const usage = { ...this.#counted, input, output, ...(thought > 0 ? { thought } : {}), ...(rate === undefined ? {} : { rate }), source };
    const counts = this.#counts;
    if (!counts) return usage;
    const stands = tokensOfCounts(counts);
    return { ...usage, input: usage.input + stands.input - standingIn(this.#call), output: usage.output + stands.output };
  }

  #cost(usage: Usage, counts: Counts | undefined): number | null {
    const price = priceAt(this.#call.route, this.#context.progress.target);
    if (!price) return null;
    const { rate = 1 } = usage;
    const searches = costOfSearches(price, usage.searches);
    if (!counts || usage.source === 'provider') return searches + rate * costOf(price, usage, hasCountRates(price) ? counts : undefined);
    const stands = tokensOfCounts(counts);
    return searches + costOf(price, { ...usage, input: usage.input - stands.input, output: usage.output - stands.output }, counts);
  }

  #hidden(): number {
    const { route, ...call } = this.#call;
    if (!isConversation(call)) return 0;
    const silent = this.#model === '' ? this.#clock.monotonic() - this.#startedAt : Infinity;
    const seen = { output: this.#output(), thought: this.#thoughts(), thinks: this.#thinks, silent };
    return hiddenThoughts(call, route, this.#context.progress.target, seen);
  }

  #thoughts(): number {
    return this.#thoughtTokens + this.#thought.tokens;
  }

  #output(): number {
    for (const text of this.#unread.splice(0)) this.#said.add(text);
    return this.#tokens + this.#said.tokens + this.#thought.tokens;
  }
}

/** Prompt tokens that represent input not counted in tokens. */
const standingIn = (call: AdmittedCall): number => (isConversation(call) || !call.counts ? 0 : tokensOfCounts(call.counts).input);

const mostSearches = 1000;
/** Tokens: no model reads more. */
const longestContext = 100_000_000;
/** The factor by which plausible counts may exceed the requested maximum, since some providers do not limit thoughts, and the known context window. */
const generous = 10;

/** The amounts that an answer says it has, in place of those of its request. */
const plausible = ({ pictures, ...rest }: Counts, asked: Counts = {}): Counts =>
  pictures === undefined || pictures > (asked.pictures ?? 1) * generous ? { ...asked, ...rest } : { ...asked, ...rest, pictures };

const isCount = (tokens: number, most: number) => tokens >= 0 && tokens <= most;

const leftFor = ({ reason }: AbortSignal): Ended => ({ end: reason instanceof Cancelled ? 'cancelled' : 'client-left', status: 499 });

const asItIs = (error: unknown) => error;

/** A client that leaves aborts the signal with a reason that is no fault. */
const hasLeft = ({ aborted, reason }: AbortSignal): boolean => aborted && !(reason instanceof Fault);

/** The end of an answer that was refused when it was judged, even if the call itself succeeded. */
function reviewedEnd({ review, signal }: Context): Ended | undefined {
  const refusal = review?.refusal ?? review?.outer?.refusal;
  return refusal && !signal.aborted ? refusedEnd(refusal) : undefined;
}

const refusedEnd = ({ code, status }: Fault): Ended => ({ end: code === 'invalid' ? 'refused' : 'upstream-failed', status, isByCheck: true });

/** The end of an answer that broke off. If the client has not left, an error that is not a provider's fault is ours. */
function badEnd(error: unknown, signal: AbortSignal, spoke: boolean): Ended {
  if (hasLeft(signal)) return leftFor(signal);
  const fault = faultOf(signal.aborted ? signal.reason : error);
  const end = fault.code === 'timed-out' ? 'timed-out' : signal.aborted || fault.code === 'internal' ? 'cancelled' : spoke ? 'upstream-cut' : 'upstream-failed';
  return { end, status: fault.status };
}
