import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, QueueFull } from '#kit/async/fair-semaphore';
import { networkOf } from '#kit/net/client-network';
import { isPassword, sealedPassword } from './password.ts';

/** Passwords are sealed and checked a few at a time, and each network of clients gets its turn. Both throw Fault `overloaded` where too many wait. */
export interface Passwords {
  /** What is stored of a password. @param address of the client */
  sealed(password: string, address: string): Promise<string>;
  /** Whether it is the stored one; where none is stored it takes as long to say no. @param address of the client */
  isRight(password: string, sealed: string | null, address: string): Promise<boolean>;
}

/** Each takes a thread for a tenth of a second and 32 MB. Of the four threads of the process two are left to files, names and compression. */
const bounds = { each: 2, all: 2, unfinished: { each: { jobs: 20, size: 20 }, all: { jobs: 200, size: 200 } } };

export function openPasswords(clock: Clock): Passwords {
  const line = openFairSemaphore(bounds, clock);
  const never = new AbortController().signal;
  const inTurn = <Result>(address: string, work: () => Promise<Result>) => line.run({ owner: networkOf(address), size: 1, signal: never }, work).catch(refused);
  return {
    sealed: (password, address) => inTurn(address, () => sealedPassword(password)),
    isRight: (password, sealed, address) => inTurn(address, () => isPassword(password, sealed)),
  };
}

function refused(error: unknown): never {
  if (!(error instanceof QueueFull)) throw error;
  throw new Fault('overloaded', 'Too many passwords are being checked: try again in a moment.', { retryAfter: 1 });
}
