import type { AccountKind } from '#core/account';
import { isConversation } from '#core/routed-call';
import { Fault } from '#core/fault';
import type { Context } from '#core/context';
import { promptTokens, type CountTokens } from '#core/measure';
import { dearestInput, mostOf as mostUsd, ratesOf } from '#core/price';
import { mayThinkUnseen } from '#core/thinking';
import type { RoutedCall } from '#core/routed-call';
import type { Hold } from './local-lease.ts';
import { mostOf, type Most } from './most.ts';

/** Calls' worth of room below which the prompt is counted and not bounded. */
const fewReservations = 16;
/** Steps that an answer may have which cannot be ended while it runs, where its model's limit is not known: with 2,048 tokens a step, what every model takes as a maximum. */
const unknownSteps = 4;
/** An answer that cannot be ended is not cut short to less than this part of a step where it has only to wait for more. */
const usefulPart = 4;

/** Bytes of o200k's longest token. */
const longestToken = 128;

const free = { input: 0, output: 0 };

/** How much a call needs set aside: its prompt and the answer it may give. */
export class CostEstimate {
  /** About as many tokens as the prompt has: English text has four bytes a token. Exact when it was counted. */
  promptTokens: number;
  readonly #call: RoutedCall;
  readonly #step: number;
  readonly #candidates: number;
  readonly #most: Most;
  /** Is it seen how long the answer is while it comes? */
  readonly #isSeen: boolean;
  /** Output tokens of all candidates, set aside at a time where the call names no maximum: a step each. */
  readonly #atOnce: number;
  #prompt: number;
  /** Of the prompt, at least. */
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
    this.promptTokens = most.likely + Math.ceil(most.bytes / 4);
  }

  get step(): number {
    return this.#step;
  }

  get isCounted(): boolean {
    return this.#isCounted;
  }

  /** Are its headers on their way before it is settled? */
  get isStream(): boolean {
    return this.#call.stream;
  }

  /** Must somebody listen to the answer, because it may have to be ended? */
  get isOpen(): boolean {
    return !this.#most.isWhole && this.#isSeen;
  }

  /** Can nobody end the answer in time, as it comes whole or its thoughts are not seen, and is it without a maximum? Then it gets one, of what is set aside. */
  get isUnwatched(): boolean {
    return !this.#most.isWhole && !this.#isSeen;
  }

  /** Says to each claim what it needs: `least` must fit, `most` is taken if it is there, `step` is what such calls take at a time. */
  tell(holds: readonly Hold[], now: number): void {
    const { isWhole, output = unknownSteps * this.#step } = this.#most;
    const all = this.#candidates * output;
    const atOnce = isWhole ? all : this.#atOnce;
    let [least, most] = [isWhole ? all : Math.min(1, atOnce), atOnce];
    if (this.isUnwatched) [least, most] = this.#portion(holds, all, now);
    for (const hold of holds) {
      const { kind } = hold.lease.account;
      hold.isPatient = this.isUnwatched;
      hold.least = this.amount(kind, least);
      hold.most = this.amount(kind, most);
      hold.step = most === atOnce ? hold.most : this.amount(kind, atOnce);
    }
  }

  /** Is all of the account spent, or less left than the prompt costs, however few tokens it turns out to have? */
  isBeyond({ lease }: Hold): boolean {
    const left = lease.limit - lease.spent;
    return left <= 0 || this.amount(lease.account.kind, 0, this.#fewest) > left;
  }

  /**
   * Output tokens for an answer that nobody can end: all that its model can say where that is there, else half of what is there but at least a step, so
   * that the calls beside it get something too. Less than a part of a step does only where no more is unspent.
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

  /** Is so little left that a bound of the prompt will not do? */
  isNear(holds: readonly Hold[], now: number): boolean {
    return holds.some(({ lease, step }) => isSpent(lease.account.kind) && lease.answered > 0 && step * fewReservations > lease.reach(now));
  }

  /** Counts the prompt, which was only bounded. */
  async count(countTokens: CountTokens, context: Context): Promise<void> {
    const counted = await promptTokens(this.#call, countTokens, context);
    this.#prompt = counted - this.#most.likely + this.#most.fixed;
    this.promptTokens = counted;
    this.#isCounted = true;
  }

  /** What the prompt and so many output tokens take of an account. */
  amount(kind: AccountKind, output: number, input = this.#prompt): number {
    const { rate, price = free } = this.#call.route;
    if (kind === 'usd') return mostUsd(price, input, output) + this.#most.usd;
    return isSpent(kind) ? Math.ceil(input * rate.input + output * rate.output) : 1;
  }

  /** Output tokens of all candidates that so much of an account covers. */
  output(kind: AccountKind, amount: number): number {
    if (!isSpent(kind)) return Infinity;
    const rates = kind === 'usd' ? ratesOf(this.#call.route.price ?? free, this.#prompt) : this.#call.route.rate;
    const { input, output } = rates;
    if (output === 0) return Infinity;
    return kind === 'usd'
      ? Math.floor(((amount - this.#most.usd) * 1e6 - this.#prompt * dearestInput(rates)) / output + slack)
      : Math.floor((amount - this.#prompt * input) / output);
  }

  /** The maximum of output tokens for each candidate of an answer that nobody can end. @param output tokens set aside; nothing where all is that its model can say */
  bound(output: number): number | undefined {
    if (!this.isUnwatched || output === Infinity) return undefined;
    const each = Math.max(1, Math.floor(output / this.#candidates));
    const { output: most = Infinity, isLimit } = this.#most;
    return isLimit && each >= most ? undefined : Math.min(each, most);
  }

  /** Why the call does not fit into what is not spent of an account. `retryAfter` in seconds. */
  refusal({ lease: local, least }: Hold, retryAfter: number): Fault {
    const { kind, owner } = local.account;
    const left = Math.max(0, local.limit - local.spent);
    const whose = owner.startsWith('team:') ? "your team's plan" : 'your plan';
    const what = { inference: 'tokens', train: 'training tokens', usd: 'US dollars', requests: 'requests', streams: 'streams' }[kind];
    if (left <= 0) return new Fault('quota-spent', `You have used up the ${what} of ${whose} for this month.`, { retryAfter });
    const [needs, has] = kind === 'usd' ? [dollars(least), dollars(left)] : [`${least} ${what}`, `${Math.floor(left)} ${what}`];
    const most = Math.floor(this.output(kind, left) / this.#candidates);
    const shorter = this.#call.sampling.maxTokens !== undefined && most > 0;
    const advice = shorter
      ? `ask for a max_tokens of ${most} at most`
      : isConversation(this.#call)
        ? 'send a shorter prompt'
        : this.#call.counts?.pictures === undefined
          ? 'ask for less'
          : 'ask for fewer or smaller pictures';
    return new Fault('quota-spent', `This request may cost ${needs} of ${whose}, and ${has} are left for this month: ${advice}.`, {
      retryAfter,
      ...(shorter ? { field: 'max_tokens' } : {}),
    });
  }
}

/** Of a token: dollars are sums of fractions. */
const slack = 1e-6;

/** Is an account of this kind used up by what was said? */
const isSpent = (kind: AccountKind) => kind !== 'requests' && kind !== 'streams';

const dollars = (usd: number) => `US$ ${usd.toPrecision(3)}`;
