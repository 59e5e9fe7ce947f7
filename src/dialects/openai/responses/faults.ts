import { Fault } from '#core/fault';
import type { OpenAIError } from '../faults.ts';

export { decodeFault, faultOfError } from '../faults.ts';

/** The fault for a provider's answer that is not a response object. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a response.', { elsewhere: true });

/** `error.code` of a response object, which is one of OpenAI's closed list. */
export function responseErrorCode({ type, code }: OpenAIError['error']): string {
  if (type === 'invalid_request_error' || code === 'invalid_prompt') return 'invalid_prompt';
  return type === 'insufficient_quota' || code === 'rate_limit_exceeded' ? 'rate_limit_exceeded' : 'server_error';
}
