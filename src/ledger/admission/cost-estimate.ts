import type { AccountKind } from '#core/account';
import { isConversation } from '#core/routed-call';
import { Fault } from '#core/fault';
import type { Context } from '#core/context';
import { estimatedPrompt, promptTokens, type CountTokens } from '#core/measure';
import { dearestInput, mostOf as mostUsd, ratesOf, planTokensOf } from '#core/price';
import { mayThinkUnseen } from '#core/thinking';
import type { RoutedCall } from '#core/routed-call';
import { inUnits } from '#kit/text/in-units';
import { estimatedTokensOf } from '#kit/tokens/estimate';
import { capitalized, unitOf, type LimitWords } from './limit-words.ts';
import type { Hold } from './local-lease.ts';
import { mostOf, type Most } from './most.ts';

/** With room for fewer calls than this, the prompt is counted and not only bounded. */
const fewReservations = 16;
/** Steps set aside for an answer that cannot be ended while it runs, where its model's limit is not known: with 2,048 tokens a step, a maximum that every model accepts. */
const unknownSteps = 4;
/** An answer that cannot be ended waits for at least this part of a step, unless less is unspent. */
const usefulPart = 4;

/** Bytes of o200k's longest token. */
const longestToken = 128;

const free = { input: 0, output: 0 };

/** What a call needs to set aside of each account: its prompt and the answer that it may get. */
export class CostEstimate {
  /** Tokens of the prompt as the journal has them in case this process dies: by four bytes a token, as in English text, where they were not counted. */
  quickTokens: number;
  readonly #call: RoutedCall;
  readonly #step: number;
  readonly #candidates: number;
  readonly #most: Most;
  /** Is the length of the answer known while it arrives? */
  readonly #isSeen: boolean;
  /** Output tokens of all candidates that are set aside at a time where the call names no maximum: a step each. */
  readonly #atOnce: number;
  #prompt: number;
  /** The fewest tokens that the prompt can have. */
  readonly #fewest: number;
  #isCounted = false;

  /** @param step output tokens that are set aside at a time where the call names no maximum */
  constructor(call: RoutedCall, step: number) {
    const most = mostOf(call);
    this.#call = call;
    this.#step = step;
    this.#candidates = call.sampling.candidates ?? 1;
    this.#most = most;
    this.#isSeen = call.stream && (most.isWhole || !isConversation(call) || !mayThinkUnseen(call, call.route));
    this.#atOnce = this.#candidates * Math.min(step, most.output ?? Infinity);
    this.#prompt = most.fixed + most.bytes; // a token has at least one byte
    this.#fewest = most.likely + Math.ceil(most.bytes / longestToken);
    this.quickTokens = most.likely + Math.ceil(most.bytes / 4);
  }

  /** Tokens of the prompt: exact when they were counted, else an estimate. It is made when somebody asks: most answers come with their provider's count. */
  get promptTokens(): number {
    if (this.#isCounted) return this.quickTokens;
    return estimatedPrompt(this.#call, estimatedTokensOf);
  }

  get step(): number {
    return this.#step;
  }

  get isCounted(): boolean {
    return this.#isCounted;
  }

  /** Are the answer's headers sent before the call is settled? */
  get isStream(): boolean {
    return this.#call.stream;
  }

  /** Must the answer be watched, because it may have to be ended? */
  get isOpen(): boolean {
    return !this.#most.isWhole && this.#isSeen;
  }

  /** Has the call no maximum, and can its answer not be ended in time, since it comes whole or with hidden thoughts? Then what is set aside becomes its maximum. */
  get isUnwatched(): boolean {
    return !this.#most.isWhole && !this.#isSeen;
  }

  /** Sets the amounts of each hold: `least` must fit, `most` is taken if it is there, `step` is what such calls take at a time. */
  setAmounts(holds: readonly Hold[], now: number): void {
    const { isWhole, output = unknownSteps * this.#step } = this.#most;
    const all = this.#candidates * output;
    const atOnce = isWhole ? all : this.#atOnce;
    let [least, most] = [isWhole ? all : Math.min(1, atOnce), atOnce];
    if (this.isUnwatched) [least, most] = this.#portion(holds, all, now);
    for (const hold of holds) {
      const { kind } = hold.lease.account;
      hold.isPatient = this.isUnwatched;
      const whole = kind === 'tokens' ? this.#ofMinute(hold, atOnce) : Infinity;
      hold.least = this.amount(kind, Math.min(least, whole));
      hold.most = this.amount(kind, Math.min(most, whole));
      hold.step = most === atOnce ? hold.most : this.amount(kind, atOnce);
    }
  }

  /** Output tokens to set aside of a minute. A full minute ends no answer: what it says beyond them, the next calls wait for. So a step may be more than a minute allows. */
  #ofMinute({ lease }: Hold, atOnce: number): number {
    return this.#most.isWhole ? atOnce : Math.min(atOnce, Math.max(1, this.#outputFor(lease.limit)));
  }

  /** Is all of the account spent, or less left than the prompt costs, however few tokens it turns out to have? */
  isBeyond({ lease }: Hold): boolean {
    const left = lease.limit - lease.spent;
    return left <= 0 || this.amount(lease.account.kind, 0, this.#fewest) > left;
  }

  /**
   * Output tokens for an answer that cannot be ended: all that its model can say where that is there, else half of what is there but at least a step, so that
   * the calls beside it get something too. Less than `usefulPart` of a step is enough only where no more is unspent.
   */
  #portion(holds: readonly Hold[], all: number, now: number): readonly [least: number, most: number] {
    let [reach, unspent] = [Infinity, Infinity];
    for (const { lease } of holds) {
      const { kind } = lease.account;
      reach = Math.min(reach, this.output(kind, lease.reach(now)));
      unspent = Math.min(unspent, this.output(kind, lease.limit - lease.spent));
    }
    const useful = Math.min(all, Math.ceil(this.#atOnce / usefulPart));
    const least = Math.max(Math.min(1, all), Math.min(useful, unspent));
    return [least, reach >= all ? all : Math.max(least, Math.min(all, Math.max(this.#atOnce, Math.floor(reach / 2))))];
  }

  /** Is so little left that the prompt must be counted, and not only bounded? */
  isNear(holds: readonly Hold[], now: number): boolean {
    return holds.some(({ lease, step }) => isSpent(lease.account.kind) && lease.answered > 0 && step * fewReservations > lease.reach(now));
  }

  /** Counts the prompt, which has only been bounded. */
  async count(countTokens: CountTokens, context: Context): Promise<void> {
    const counted = await promptTokens(this.#call, countTokens, context);
    this.#prompt = counted - this.#most.likely + this.#most.fixed;
    this.quickTokens = counted;
    this.#isCounted = true;
  }

  /** What the prompt and this many output tokens cost, in the account's unit. */
  amount(kind: AccountKind, output: number, input = this.#prompt): number {
    const { rate, price = free } = this.#call.route;
    if (kind === 'usd') return mostUsd(price, input, output) * this.#most.rate + this.#most.usd;
    return isSpent(kind) ? planTokensOf(rate, input, output) : 1;
  }

  /** Output tokens of all candidates that an amount of an account covers, after the prompt. */
  output(kind: AccountKind, amount: number): number {
    if (!isSpent(kind) || kind === 'tokens') return Infinity;
    if (kind !== 'usd') return this.#outputFor(amount);
    const rates = ratesOf(this.#call.route.price ?? free, this.#prompt);
    if (rates.output === 0) return Infinity;
    return Math.floor((((amount - this.#most.usd) * 1e6) / this.#most.rate - this.#prompt * dearestInput(rates)) / rates.output + slack);
  }

  /** The same of plan tokens. */
  #outputFor(planTokens: number): number {
    const { input, output } = this.#call.route.rate;
    return output === 0 ? Infinity : Math.floor((planTokens - this.#prompt * input) / output + slack);
  }

  /** The maximum of output tokens of each candidate, for an answer that cannot be ended. @param output tokens set aside @returns undefined where that is all its model can say */
  bound(output: number): number | undefined {
    if (!this.isUnwatched || output === Infinity) return undefined;
    const each = Math.max(1, Math.floor(output / this.#candidates));
    const { output: most = Infinity, isLimit } = this.#most;
    return isLimit && each >= most ? undefined : Math.min(each, most);
  }

  /** Why the call does not fit into what is unspent of an account. @param retryAfter seconds */
  spentFault({ lease: local, least }: Hold, { of, period, limit }: LimitWords, retryAfter: number): Fault {
    const { kind } = local.account;
    const left = Math.max(0, local.limit - local.spent);
    const what = unitOf(kind);
    if (local.limit <= 0)
      return new Fault('quota-spent', `${capitalized(of)} allows no ${what} (${limit}): ask an administrator.`, { retryAfter, limit: kind });
    if (left <= 0) {
      const next = period === 'today' ? 'tomorrow' : 'next month';
      const text = `You have used up the ${what} of ${of} for ${period} (${limit}): send this again ${next} (UTC), or ask an administrator for more.`;
      return new Fault('quota-spent', text, { retryAfter, limit: kind });
    }
    const [needs, has] = kind === 'usd' ? [dollars(least), dollars(left)] : [inUnits(least, what), inUnits(Math.floor(left), what)];
    const { advice, field } = this.#advice(kind, left);
    return new Fault(
      'quota-spent',
      `This request may cost ${needs} of ${of}, and ${has} ${has.startsWith('1 ') ? 'is' : 'are'} left for ${period} (${limit}): ${advice}.`,
      {
        retryAfter,
        limit: kind,
        ...field,
      },
    );
  }

  /** Why the call does not fit into a minute, however empty. */
  minuteFault({ lease: local, least }: Hold, { of, limit }: LimitWords): Fault {
    const { advice, field } = this.#advice('inference', local.limit);
    return new Fault('rate-limited', `This request may cost ${least} tokens, and ${of} allows ${local.limit} a minute (${limit}): ${advice}.`, {
      retryAfter: 60,
      never: true,
      ...field,
    });
  }

  #advice(kind: AccountKind, left: number): { readonly advice: string; readonly field: { readonly field?: string } } {
    const most = Math.floor(this.output(kind, left) / this.#candidates);
    if (this.#call.sampling.maxTokens !== undefined && most > 0) return { advice: `ask for a max_tokens of ${most} at most`, field: { field: 'max_tokens' } };
    if (isConversation(this.#call)) return { advice: 'send a shorter prompt, or ask an administrator for a higher limit', field: {} };
    return { advice: this.#call.counts?.pictures === undefined ? 'ask for less' : 'ask for fewer or smaller pictures', field: {} };
  }
}

/** A part of a token, for rounding: dollars and plan tokens are sums of fractions. */
const slack = 1e-6;

/** Is an account of this kind used up by tokens? */
const isSpent = (kind: AccountKind) => kind !== 'requests' && kind !== 'streams';

/** `1 token`, `2 tokens` */

const dollars = (usd: number) => `US$ ${usd.toPrecision(3)}`;
