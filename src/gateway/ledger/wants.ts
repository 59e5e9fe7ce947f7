import { Fault } from '#model/fault';
import { promptBound, promptTokens } from '#model/measure';
import type { Plan } from '#model/plan';
import type { RoutedCall } from '../calls.ts';
import type { Amount } from './balance.ts';

const fewReservations = 16;

/** How much a call needs set aside: its prompt and the answer it may give, in what its plan limits. */
export class Wants {
  readonly #call: RoutedCall;
  readonly #step: number;
  readonly #candidates: number;
  readonly #rate: { readonly input: number; readonly output: number };
  readonly #price: { readonly input: number; readonly output: number };
  /** Output tokens of a candidate: the maximum asked, else a step. */
  readonly #asked: number;
  readonly #limited: boolean;
  #prompt: number;

  /** @param step output tokens that are set aside at a time where the call names no maximum */
  constructor(call: RoutedCall, step: number, plan: Plan) {
    const { sampling, route } = call;
    this.#call = call;
    this.#step = step;
    this.#candidates = sampling.candidates ?? 1;
    this.#rate = plan.monthlyTokens === undefined ? free : route.rate;
    this.#price = plan.monthlyUsd === undefined ? free : (route.price ?? free);
    this.#asked = Math.min(sampling.maxTokens ?? step, route.limits.output ?? Infinity);
    this.#limited = this.#rate !== free || this.#price !== free;
    this.#prompt = this.#limited ? promptBound(call) : 0; // nobody asks what an unlimited call may cost
  }

  /** Is so much left that a bound of the prompt will do? */
  isSmallBeside(left: Amount): boolean {
    const { planTokens, usd } = this.#amountOf(this.#candidates * this.#asked);
    return planTokens * fewReservations <= left.planTokens && usd * fewReservations <= left.usd;
  }

  /** Counts the prompt, where it was only bounded. */
  async count(countTokens: (texts: Iterable<string>) => Promise<number>): Promise<void> {
    if (this.#limited) this.#prompt = await promptTokens(this.#call, countTokens);
  }

  /** `least`: what must fit; `most`: what to take if it is there. */
  atFirst(): { least: Amount; most: Amount } {
    const most = this.#amountOf(this.#candidates * this.#asked);
    return { least: this.#call.sampling.maxTokens === undefined ? this.#amountOf(1) : most, most };
  }

  /** For an answer that has so many output tokens and goes on. */
  after(output: number): { least: Amount; most: Amount } {
    return { least: this.#amountOf(output), most: this.#amountOf(output + this.#step) };
  }

  /** Output tokens of all candidates that this amount covers. */
  outputOf({ planTokens, usd }: Amount): number {
    const { input, output } = this.#rate;
    const tokens = output === 0 ? Infinity : Math.floor((planTokens - this.#prompt * input) / output);
    if (this.#price.output === 0) return tokens;
    return Math.min(tokens, Math.floor((usd * 1e6 - this.#prompt * this.#price.input) / this.#price.output));
  }

  /** Must somebody listen to the answer, because it may have to be ended? */
  get open(): boolean {
    return this.#limited && this.#call.stream && this.#call.sampling.maxTokens === undefined;
  }

  /** The maximum of output tokens that a call needs because nobody can stop it: it names none, and less is left than its model can say. */
  bound(held: Amount, left: Amount): number | undefined {
    const { sampling, stream, route } = this.#call;
    if (!this.#limited || stream || sampling.maxTokens !== undefined) return undefined;
    const reach = this.outputOf({ planTokens: held.planTokens + left.planTokens, usd: held.usd + left.usd });
    if (reach >= this.#candidates * (route.limits.output ?? this.#step * fewReservations)) return undefined;
    return Math.max(1, Math.floor(this.outputOf(held) / this.#candidates));
  }

  /** Why the call does not fit into what its plan still has. `retryAfter` in seconds. */
  refusal(unspent: Amount, plan: Plan, retryAfter: number): Fault {
    const { least } = this.atFirst();
    const inTokens = least.planTokens > unspent.planTokens || plan.monthlyTokens === 0;
    const left = inTokens ? unspent.planTokens : unspent.usd;
    if (left <= 0) return new Fault('quota-spent', `You have used up the ${inTokens ? 'tokens' : 'US dollars'} of your plan for this month.`, { retryAfter });
    const [needs, has] = inTokens ? [`${least.planTokens} tokens`, `${Math.floor(left)} tokens`] : [dollars(least.usd), dollars(left)];
    const most = Math.floor(this.outputOf(unspent) / this.#candidates);
    const shorter = this.#call.sampling.maxTokens !== undefined && most > 0;
    return new Fault(
      'quota-spent',
      `This request may cost ${needs} of your plan, and ${has} are left for this month: ${shorter ? `ask for a max_tokens of ${most} at most` : 'send a shorter prompt'}.`,
      { retryAfter, ...(shorter ? { field: 'max_tokens' } : {}) },
    );
  }

  #amountOf(output: number): Amount {
    return {
      planTokens: Math.ceil(this.#prompt * this.#rate.input + output * this.#rate.output),
      usd: (this.#prompt * this.#price.input + output * this.#price.output) / 1e6,
    };
  }
}

const free = { input: 0, output: 0 };

const dollars = (usd: number) => `US$ ${usd.toPrecision(3)}`;
