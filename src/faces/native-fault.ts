import type { Fault } from '#core/fault';

/** A refusal in the shape of the native interface and of our own endpoints: every client finds its word for the message. */
export function nativeRefusal(fault: Fault, requestId: string) {
  const { message, status } = fault;
  return { response: message, status, message, error: message, error_ref: requestId };
}
