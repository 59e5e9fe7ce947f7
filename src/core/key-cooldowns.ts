import type { Fault } from './fault.ts';

/** Cooldowns of the keys of providers whose rate limit was exceeded, each for one model. A key is identified by an object; its text is not known here. */
export interface KeyCooldowns {
  /** False: no key is in cooldown, and there is nothing to ask. */
  readonly any: boolean;
  /** Milliseconds until the key may be used for the model; 0 if it may be. */
  wait(model: string, key: object): number;
  /** Marks the key as in use. After a cooldown one call tries it: others pass over it until that call is answered, or for as long as a refusal takes. */
  used(model: string, key: object): void;
  /** The provider's rate limit was exceeded with this key. */
  limited(model: string, key: object, fault: Fault): void;
  accepted(model: string, key: object): void;
}
