import { Fault } from '#core/fault';

export { decodeFault, faultOfError } from '../faults.ts';

/** The fault for a provider's answer that is not a response object. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a response.', { elsewhere: true });
