import { Fault } from '#model/fault';

export { decodeFault, encodeFault, faultOfError } from '../openai-faults.ts';

/** An answer that is none. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a chat completion.', { elsewhere: true });
