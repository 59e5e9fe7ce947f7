import type { Fault } from './fault.ts';

/** The keys of providers that their rate limits set aside, each for one model. A key is whichever object stands for it; its text is not known here. */
export interface RestingKeys {
  /** False: no key rests, and there is nothing to ask. */
  readonly any: boolean;
  /** Milliseconds until the key may be used for the model; 0 if it may be. */
  wait(model: string, key: object): number;
  /** The key is used now. After a rest, nobody else uses it until it was answered, or for as long as a refusal takes. */
  used(model: string, key: object): void;
  /** The provider's rate limit was exceeded with this key. */
  limited(model: string, key: object, fault: Fault): void;
  accepted(model: string, key: object): void;
}
