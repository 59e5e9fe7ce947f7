import { Fault } from '#core/fault';

/** The words that clients look for in every refusal of a credential, also at the end of a stream. */
const badToken = 'Token is invalid [1]';

export const inKnownWords = (fault: Fault): Fault => (fault.code === 'unauthenticated' ? new Fault(fault.code, badToken, fault.details) : fault);
