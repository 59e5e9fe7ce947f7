import { Fault } from '#core/fault';

export { decodeFault, encodeFault, faultOfError } from '../faults.ts';

/** An answer that is none. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a chat completion.', { elsewhere: true });
