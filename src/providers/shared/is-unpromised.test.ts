import { expect, test } from 'vitest';
import { messages } from '#dialects/anthropic/index';
import { chat } from '#dialects/openai/chat/index';
import { responses } from '#dialects/openai/responses/index';
import { gemini } from '#dialects/gemini/index';
import type { GenerateCall } from '#core/call';
import { isUnpromised } from './is-unpromised.ts';

const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const call: GenerateCall = {
  model: 'm',
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  tools: [],
  output: { type: 'schema', schema, description: 'A number.' },
  sampling: {},
  stream: false,
  extra: {},
};

test.each([chat, responses, messages, gemini])(
  'a request on the wire of $name promises the schema that it has as its client wrote it',
  ({ encodeRequest, fieldNames }) => {
    const { body } = encodeRequest(call, 'm');
    expect(isUnpromised(call, body, fieldNames)).toBe(false);
    expect(isUnpromised({ ...call, output: { type: 'schema', schema: { ...schema, minProperties: 1 } } }, body, fieldNames)).toBe(true);
    expect(isUnpromised(call, {}, fieldNames)).toBe(true);
    expect(isUnpromised({ ...call, output: { type: 'text' } }, {}, fieldNames)).toBe(false);
  },
);
