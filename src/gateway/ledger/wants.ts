import type { AccountKind } from '#model/account';
import { Fault } from '#model/fault';
import type { Context } from '#model/generate';
import { promptSize, promptTokens, type CountTokens } from '#model/measure';
import { dearestInput, mostOf, ratesOf } from '#model/price';
import type { RoutedCall } from '../calls.ts';
import type { Claim } from './holding.ts';

/** Calls' worth of room below which the prompt is counted and not bounded, and an answer nobody can stop is bounded. */
const fewReservations = 16;

/** Bytes of o200k's longest token. */
const longestToken = 128;

const free = { input: 0, output: 0 };

/** How much a call needs set aside: its prompt and the answer it may give. */
export class Wants {
  /** About as many tokens as the prompt has: English text has four bytes a token. Exact when it was counted. */
  promptTokens: number;
  readonly #call: RoutedCall;
  readonly #step: number;
  readonly #candidates: number;
  /** Output tokens of a candidate: the maximum asked, else a step. */
  readonly #asked: number;
  #prompt: number;
  /** Of the prompt, at least. */
  readonly #fewest: number;
  #isCounted = false;

  /** @param step output tokens that are set aside at a time where the call names no maximum */
  constructor(call: RoutedCall, step: number) {
    const { sampling, route } = call;
    const { fixed, bytes } = promptSize(call);
    this.#call = call;
    this.#step = step;
    this.#candidates = sampling.candidates ?? 1;
    this.#asked = Math.min(sampling.maxTokens ?? step, route.limits.output ?? Infinity);
    this.#prompt = fixed + bytes; // a token has at least one byte
    this.#fewest = fixed + Math.ceil(bytes / longestToken);
    this.promptTokens = fixed + Math.ceil(bytes / 4);
  }

  get step(): number {
    return this.#step;
  }

  get isCounted(): boolean {
    return this.#isCounted;
  }

  /** Says to each claim what it needs: `least` must fit, `most` is taken if it is there. */
  tell(claims: readonly Claim[]): void {
    const most = this.#candidates * this.#asked;
    const least = this.#call.sampling.maxTokens === undefined ? Math.min(1, most) : most;
    for (const claim of claims) {
      const { kind } = claim.holding.account;
      claim.least = this.amount(kind, least);
      claim.most = this.amount(kind, most);
    }
  }

  /** Is all of the account spent, or less left than the prompt costs, however few tokens it turns out to have? */
  isBeyond({ holding }: Claim): boolean {
    const left = holding.limit - holding.spent;
    return left <= 0 || this.amount(holding.account.kind, 0, this.#fewest) > left;
  }

  /** Is so little left that a bound of the prompt will not do? */
  isNear(claims: readonly Claim[], now: number): boolean {
    return claims.some(({ holding, most }) => isSpent(holding.account.kind) && holding.answered > 0 && most * fewReservations > holding.reach(now));
  }

  /** Counts the prompt, which was only bounded. */
  async count(countTokens: CountTokens, context: Context): Promise<void> {
    this.#prompt = this.promptTokens = await promptTokens(this.#call, countTokens, context);
    this.#isCounted = true;
  }

  /** What the prompt and so many output tokens take of an account. */
  amount(kind: AccountKind, output: number, input = this.#prompt): number {
    const { rate, price = free } = this.#call.route;
    if (kind === 'usd') return mostOf(price, input, output);
    return isSpent(kind) ? Math.ceil(input * rate.input + output * rate.output) : 1;
  }

  /** Output tokens of all candidates that so much of an account covers. */
  output(kind: AccountKind, amount: number): number {
    if (!isSpent(kind)) return Infinity;
    const rates = kind === 'usd' ? ratesOf(this.#call.route.price ?? free, this.#prompt) : this.#call.route.rate;
    const { input, output } = rates;
    if (output === 0) return Infinity;
    return kind === 'usd'
      ? Math.floor((amount * 1e6 - this.#prompt * dearestInput(rates)) / output + slack)
      : Math.floor((amount - this.#prompt * input) / output);
  }

  /** Must somebody listen to the answer, because it may have to be ended? */
  get isOpen(): boolean {
    return this.#call.stream && this.#call.sampling.maxTokens === undefined;
  }

  /** The maximum of output tokens that a call needs because nobody can stop it: it names none, and less can be had than its model can say. */
  bound(claims: readonly Claim[], now: number): number | undefined {
    const { sampling, stream, route } = this.#call;
    if (stream || sampling.maxTokens !== undefined) return undefined;
    const enough = this.#candidates * (route.limits.output ?? this.#step * fewReservations);
    let [held, reach] = [Infinity, Infinity];
    for (const { holding, held: amount } of claims) {
      const { kind } = holding.account;
      held = Math.min(held, this.output(kind, amount));
      reach = Math.min(reach, this.output(kind, amount + Math.max(0, holding.reach(now))));
    }
    return reach >= enough ? undefined : Math.max(1, Math.floor(held / this.#candidates));
  }

  /** Why the call does not fit into what is not spent of an account. `retryAfter` in seconds. */
  refusal({ holding, least }: Claim, retryAfter: number): Fault {
    const { kind, owner } = holding.account;
    const left = Math.max(0, holding.limit - holding.spent);
    const whose = owner.startsWith('team:') ? "your team's plan" : 'your plan';
    const what = { inference: 'tokens', train: 'training tokens', usd: 'US dollars', requests: 'requests', streams: 'streams' }[kind];
    if (left <= 0) return new Fault('quota-spent', `You have used up the ${what} of ${whose} for this month.`, { retryAfter });
    const [needs, has] = kind === 'usd' ? [dollars(least), dollars(left)] : [`${least} ${what}`, `${Math.floor(left)} ${what}`];
    const most = Math.floor(this.output(kind, left) / this.#candidates);
    const shorter = this.#call.sampling.maxTokens !== undefined && most > 0;
    return new Fault(
      'quota-spent',
      `This request may cost ${needs} of ${whose}, and ${has} are left for this month: ${shorter ? `ask for a max_tokens of ${most} at most` : 'send a shorter prompt'}.`,
      { retryAfter, ...(shorter ? { field: 'max_tokens' } : {}) },
    );
  }
}

/** Of a token: dollars are sums of fractions. */
const slack = 1e-6;

/** Is an account of this kind used up by what was said? */
const isSpent = (kind: AccountKind) => kind !== 'requests' && kind !== 'streams';

const dollars = (usd: number) => `US$ ${usd.toPrecision(3)}`;
