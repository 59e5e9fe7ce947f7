/** Vendors who know what they have said themselves. */
import type { Saying } from '../upstream/good.ts';
import { rule, type Refusal, type Rule, type WireName } from './vendor.ts';

/** Says of thoughts and texts by whom they are, and in which answer. */
export function told(saying: Saying, vendor: string, id: number): Saying {
  const by = `by ${vendor} ${id}.`;
  const { thought, signature, text } = saying;
  return {
    ...saying,
    ...(thought === undefined ? {} : { thought: `${thought}${by} ` }),
    ...(signature === undefined ? {} : { signature: `${signature}-${by.replaceAll(' ', '-')}` }),
    ...(text === '' && saying.tools ? {} : { text: `${text ?? 'Heard'} (${by})` }),
  };
}

/** Signatures of Claude are good on all of its platforms. https://platform.claude.com/docs/en/build-with-claude/extended-thinking */
const kin: Readonly<Record<string, string>> = { 'vertex-claude': 'anthropic' };
const kinOf = (vendor: string) => kin[vendor] ?? vendor;

const refusals: Readonly<Record<WireName, Refusal>> = {
  chat: { message: '' },
  responses: {
    message: 'The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
    code: 'invalid_encrypted_content',
  },
  messages: { message: 'messages.1.content.0: Invalid `signature` in `thinking` block' },
  gemini: { message: 'Thought signature is not valid' },
};

/** Signatures of others: thoughts that they only show are texts like others. */
export const signersIn = (vendor: string, text: string): readonly string[] =>
  [...text.matchAll(/-by-([a-z-]+)-\d+\./g)].flatMap(([, by]) => (kinOf(by!) === kinOf(vendor) ? [] : [by!]));

export const ownThoughts = (vendor: string): Rule =>
  rule('thoughts are our own', 'openai/codex#26234', ({ wire, body }) => (signersIn(vendor, JSON.stringify(body)).length > 0 ? refusals[wire] : undefined));
