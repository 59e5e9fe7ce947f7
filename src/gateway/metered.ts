import type { Clock } from '#kit/clock';
import { speaks, type FinishReason, type GenerateEvent, type Usage } from '#model/event';
import { Fault, faultOf } from '#model/fault';
import type { Context, Generate } from '#model/generate';
import { promptEstimate } from '#model/measure';
import type { End, UsageRow } from '#model/usage-row';
import type { AdmittedCall } from './calls.ts';

/** Listens to what is said and settles the call in the books, once, however it ends. The last event is given on only after that. */
export function metered(clock: Clock, inner: Generate<AdmittedCall>): Generate<AdmittedCall> {
  return async function* (call, context) {
    const meter = new Meter(call, context, clock);
    let end: End = 'client-left';
    let status = 200;
    try {
      for await (const event of inner(call, context)) {
        meter.hear(event);
        yield event;
        if (meter.overdrawn()) {
          yield* meter.cutShort();
          end = 'quota-ended';
          return;
        }
      }
      end = meter.goodEnd();
    } catch (error) {
      ({ end, status } = badEnd(error, context.signal, meter.spoke));
      throw error;
    } finally {
      call.reservation.settle(meter.row(end, status));
    }
  };
}

/** Bytes of UTF-8 that make a token, where nobody counted. */
const bytesPerToken = 4;

class Meter {
  readonly #call: AdmittedCall;
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #at: number;
  readonly #startedAt: number;
  #firstAt: number | undefined;
  #bytes = 0;
  #tokens = 0;
  #usage: Usage | undefined;
  #model = '';
  readonly #reasons: FinishReason[] = [];
  spoke = false;

  constructor(call: AdmittedCall, context: Context, clock: Clock) {
    this.#call = call;
    this.#context = context;
    this.#clock = clock;
    this.#at = clock.now();
    this.#startedAt = clock.monotonic();
  }

  hear(event: GenerateEvent): void {
    if (!this.spoke && speaks(event)) {
      this.spoke = true;
      this.#firstAt = this.#clock.monotonic();
    }
    switch (event.type) {
      case 'started':
        this.#model = event.model;
        break;
      case 'text':
      case 'thought':
      case 'refusal':
        this.#bytes += Buffer.byteLength(event.text);
        break;
      case 'tool-call':
        this.#bytes += Buffer.byteLength(event.json) + (event.name?.length ?? 0);
        break;
      case 'passed':
        this.#tokens += event.tokens;
        break;
      case 'part':
        break;
      case 'finished':
        this.#reasons[event.candidate] = event.reason;
        break;
      case 'usage':
        this.#usage = event.usage;
        break;
      default:
        event satisfies never;
    }
  }

  /** Has more been said than was set aside, with no more to be had? */
  overdrawn(): boolean {
    const { reservation } = this.#call;
    const said = this.#said();
    return this.#usage === undefined && said > reservation.output && !reservation.grow(said);
  }

  /** The events that end an answer for which no quota is left. */
  cutShort(): readonly GenerateEvent[] {
    const candidates = this.#call.sampling.candidates ?? 1;
    this.#usage = { input: promptEstimate(this.#call), output: this.#said(), source: 'partial' };
    return [
      ...Array.from({ length: candidates }, (_, candidate) => ({ type: 'finished' as const, candidate, reason: 'length' as const, raw: 'quota' })),
      { type: 'usage', usage: this.#usage },
    ];
  }

  goodEnd(): End {
    if (this.#reasons.includes('length')) return 'length';
    if (this.#reasons.includes('tool')) return 'tool';
    return this.#reasons.includes('refused') ? 'refused' : 'completed';
  }

  row(end: End, status: number): UsageRow {
    const { route } = this.#call;
    const { requestId, step, caller, app, face, progress } = this.#context;
    const whole = end === 'completed' || end === 'length' || end === 'tool' || end === 'refused';
    const asked = this.spoke || whole || end === 'client-left';
    const usage: Usage = this.#usage ?? { input: asked ? promptEstimate(this.#call) : 0, output: this.#said(), source: whole ? 'estimated' : 'partial' };
    const now = this.#clock.monotonic();
    const last = progress.attempts.at(-1);
    return {
      requestId,
      step,
      at: this.#at,
      userId: caller.userId,
      keyId: caller.keyId,
      app,
      face,
      model: this.#call.model,
      servedModel: this.#model,
      provider: last?.provider ?? '',
      region: last?.region ?? '',
      attempts: progress.attempts,
      status,
      end,
      inputTokens: usage.input,
      outputTokens: usage.output,
      cachedTokens: usage.cached ?? 0,
      thoughtTokens: usage.thought ?? 0,
      provenance: usage.source,
      planTokens: Math.ceil(usage.input * route.rate.input + usage.output * route.rate.output),
      costUsd: route.price ? (usage.input * route.price.input + usage.output * route.price.output) / 1e6 : null,
      queueMs: this.#call.reservation.waited,
      firstTokenMs: this.#firstAt === undefined ? null : this.#firstAt - this.#startedAt,
      totalMs: now - this.#startedAt,
    };
  }

  #said(): number {
    return this.#tokens + Math.ceil(this.#bytes / bytesPerToken);
  }
}

function badEnd(error: unknown, signal: AbortSignal, spoke: boolean): { end: End; status: number } {
  if (signal.aborted && !(signal.reason instanceof Fault)) return { end: 'client-left', status: 499 };
  const fault = faultOf(signal.aborted ? signal.reason : error);
  const end = fault.code === 'timed-out' ? 'timed-out' : signal.aborted ? 'cancelled' : spoke ? 'upstream-cut' : 'upstream-failed';
  return { end, status: fault.status };
}
