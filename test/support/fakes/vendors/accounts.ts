/** What the vendors say of keys, money and prompts rather than of fields: chosen by the key or by what the user says. */
import { rule, type Heard, type Refusal, type Rule } from './vendor.ts';

type Words = Readonly<Record<string, Refusal>>;

/** A key that contains one of these words is refused so by its vendor; another vendor says 401. */
const refusals: Readonly<Record<string, Words>> = {
  'no-money': {
    deepseek: { status: 402, message: 'Insufficient Balance', type: 'unknown_error', code: 'invalid_request_error' },
    anthropic: { message: 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.' },
    openai: {
      status: 429,
      message: 'You exceeded your current quota, please check your plan and billing details.',
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    },
    openrouter: { status: 402, message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits' },
  },
  'no-room': {
    groq: {
      status: 413,
      message:
        'Request too large for model `openai/gpt-oss-120b` in organization `org_scripted` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.',
      type: 'tokens',
      code: 'rate_limit_exceeded',
    },
  },
  'no-flex': { groq: { status: 498, message: 'Flex tier capacity exceeded', type: 'flex_tier_capacity_exceeded', code: 'capacity_exceeded' } },
  'no-access': { google: { status: 403, message: 'Generative Language API has not been used in project 1234 before or it is disabled.' } },
};

const badKey: Refusal = { status: 401, message: 'Incorrect API key provided.', code: 'invalid_api_key' };

/** openclaw/openclaw#147644, openclaw/openclaw#130096 */
export const accounts = (vendor: string, key: string | undefined): Rule =>
  rule('keys and money', 'openclaw/openclaw#147644', () => {
    if (key?.includes('bad-key')) return badKey;
    const word = Object.keys(refusals).find((one) => key?.includes(one));
    return word === undefined ? undefined : (refusals[word]![vendor] ?? badKey);
  });

/** A user who says so is flagged. */
export const flagged = (vendor: string, { text }: Heard): Rule =>
  rule('flagged prompts', 'https://openrouter.ai/docs/api-reference/errors', () =>
    vendor === 'openrouter' && text.includes('flag me')
      ? {
          status: 403,
          message: 'Your input was flagged for "violence"',
          more: { metadata: { reasons: ['violence'], flagged_input: text.slice(0, 100), provider_name: 'Scripted' } },
        }
      : undefined,
  );
