import { Fault } from '#core/fault';
import { encodeFault } from '../faults.ts';

export { decodeFault, encodeFault, faultOfError } from '../faults.ts';

/** The last frame of a stream that failed: no `[DONE]` follows it. */
export const encodeFaultFrame = (fault: Fault): string => `data: ${JSON.stringify(encodeFault(fault))}\n\n`;

export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a chat completion.', { elsewhere: true });
