import { Fault } from '#core/fault';

export { decodeFault, encodeFault, faultOfError } from '../faults.ts';

/** An answer of a provider that is no response. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a response.', { elsewhere: true });
