import { Fault } from '#core/fault';
import type { OpenAIError } from '../faults.ts';

export { decodeFault, faultOfError } from '../faults.ts';

/** The fault for a provider's answer that is not a response object. */
export const malformed = (): Fault => new Fault('upstream-failed', 'The provider sent something that is not a response.', { elsewhere: true });

/**
 * `error.code` of a response object: one of OpenAI's closed list, or one of its other codes, by which clients end, compact or wait although the list lacks them.
 * https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/sse/responses.rs
 */
export function responseErrorCode({ type, code }: OpenAIError['error']): string {
  if (openaiCodes.has(code)) return code;
  return type === 'invalid_request_error' ? 'invalid_prompt' : 'server_error';
}

const openaiCodes: ReadonlySet<string> = new Set(
  'rate_limit_exceeded insufficient_quota context_length_exceeded invalid_prompt invalid_api_key model_not_found content_policy_violation'.split(' '),
);
