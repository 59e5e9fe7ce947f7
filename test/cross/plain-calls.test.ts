import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeRequest as encodeMessages } from '#dialects/anthropic/encode-request';
import { plainRequest as plainMessages } from '#dialects/anthropic/plain-request';
import { encodeRequest as encodeGemini } from '#dialects/gemini/encode-request';
import { plainRequest as plainGemini } from '#dialects/gemini/plain-request';
import { reader } from '#dialects/openai/responses/decode-answer';
import { encodeRequest as encodeResponses } from '#dialects/openai/responses/encode-request';
import { Encoder, type ResponseBeingWritten } from '#dialects/openai/responses/encoder';
import { textAnswer } from '#dialects/openai/responses/text-answer';
import { plainRequest as plainResponses } from '#dialects/openai/responses/plain-request';
import { plainResponse } from '#dialects/openai/responses/plain-response';
import { noFrame } from '#dialects/openai/responses/output-items';
import { queued } from '#dialects/openai/responses/response';
import type { EncodedRequest } from '#dialects/dialect';
import { plainCall as callOf, type GenerateCall } from '#core/call';
import type { Turn } from '#core/conversation';
import { fold } from '#core/fold';

/** Calls and answers that are nothing but texts are written and read by a short way of their own: nobody can tell it from the long one. */

const text = fc.oneof(fc.constantFrom('hello', ' ', '', '\n x ', 'a "b" \\ é \u{1F600}'), fc.string({ maxLength: 8 }));
const turnsOf = (system: Turn['extra']) =>
  fc
    .tuple(fc.boolean(), fc.array(text, { minLength: 1, maxLength: 5 }), fc.integer({ min: 0, max: 9 }))
    .map(([isInstructed, texts, odd]): readonly Turn[] => [
      ...(isInstructed ? [{ role: 'system' as const, parts: [{ type: 'text' as const, text: 'Be brief.' }], ...(system ? { extra: system } : {}) }] : []),
      ...texts.map((one, at): Turn => ({ role: at % 2 === (odd === 0 ? 1 : 0) ? 'user' : 'model', parts: [{ type: 'text', text: one }] })),
    ]);
const sampling = fc.record(
  {
    temperature: fc.constantFrom(0, 0.7, 1, 1.5),
    topP: fc.constantFrom(0, 0.5, 1),
    topK: fc.constantFrom(1, 40),
    maxTokens: fc.constantFrom(1, 15, 16, 300, 100_000),
    stop: fc.constantFrom([' '], ['END']),
    seed: fc.constantFrom(7, 2 ** 40),
    frequencyPenalty: fc.constantFrom(0, 0.5),
  },
  { requiredKeys: [] },
);

interface Wire {
  readonly dialect: string;
  readonly system?: Turn['extra'];
  readonly quirks: readonly object[];
  readonly options: readonly object[];
  encode(call: GenerateCall, quirks: object, options: object): EncodedRequest;
  plain(call: GenerateCall, quirks: object, options: object): EncodedRequest | undefined;
}

const limits = [{}, { maxOutputTokens: 200 }];
const wires: readonly Wire[] = [
  {
    dialect: 'anthropic-messages',
    quirks: [{}, { without: ['temperature'] }, { eitherSampling: true }, { innerSystem: false }, { withoutPrefill: true }, { maxOutputTokens: 256 }],
    options: [...limits, { caching: 'auto' }],
    encode: (call, quirks, options) => encodeMessages(call, 'm', quirks, options),
    plain: (call, quirks, options) => plainMessages(call, 'm', quirks, options),
  },
  {
    dialect: 'gemini',
    quirks: [
      {},
      { withoutPenalties: true },
      { signed: true },
      { withoutIds: true },
      { alwaysThinks: true },
      { withoutThinking: true },
      { maxOutputTokens: 256 },
    ],
    options: limits,
    encode: (call, quirks, options) => encodeGemini(call, 'm', quirks, options),
    plain: (call) => plainGemini(call),
  },
  {
    dialect: 'openai-responses',
    system: { 'openai-responses': { '.instructions': true } },
    quirks: [
      {},
      { encrypted: false },
      { atLeast16: true },
      { efforts: [] },
      { withoutSummary: true },
      { withoutBreakpoints: true },
      { refused: { temperature: ['none'] } },
    ],
    options: limits,
    encode: (call, quirks, options) => encodeResponses(call, 'm', quirks, options),
    plain: (call, quirks) => plainResponses(call, 'm', quirks),
  },
];

/** A member that means nothing, and keeps the call from being plain. */
const markedTurns = (turns: readonly Turn[]) => turns.map((turn) => ({ ...turn, parts: turn.parts.map((part) => ({ ...part, extra: {} })) }));

test.each(wires)('a request of $dialect is the same either way', ({ dialect, system, quirks, options, encode, plain }) => {
  const asked = fc.record({ turns: turnsOf(system), sampling, stream: fc.boolean() }, { requiredKeys: ['turns'] });
  fc.assert(
    fc.property(asked, fc.constantFrom(...quirks), fc.constantFrom(...options), (members, known, limited) => {
      const call: GenerateCall = { ...callOf({ model: 'x', turns: [] }), ...members, dialect };
      const short = encode(call, known, limited);
      const long = encode({ ...call, turns: markedTurns(call.turns) }, known, limited);
      expect(JSON.stringify(short)).toBe(JSON.stringify(long));
    }),
    { numRuns: 3000 },
  );
  const user: Turn = { role: 'user', parts: [{ type: 'text', text: 'hello' }] };
  const usual = callOf({ model: 'x', dialect, turns: [user], sampling: { maxTokens: 300 } });
  expect(plain(usual, {}, {})).toBeDefined();
  for (const more of [
    { tools: [{ type: 'function' as const, name: 'f' }] },
    { reasoning: {} },
    { extra: { [dialect]: { a: 1 } } },
    { dialect: 'x' },
    { output: { type: 'json' as const } },
  ])
    expect(plain({ ...usual, ...more }, {}, {})).toBeUndefined();
  expect(plain({ ...usual, turns: [user, { role: 'model', parts: user.parts }] }, {}, {})).toBeUndefined();
});

const message = fc.record(
  {
    type: fc.constant('message'),
    id: fc.constantFrom('msg_1', ''),
    status: fc.constantFrom('completed', 'incomplete'),
    role: fc.constant('assistant'),
    phase: fc.constantFrom(null, null, 'final_answer'),
    content: fc.array(
      fc.record(
        {
          type: fc.constantFrom('output_text', 'output_text', 'refusal'),
          text: fc.constantFrom('hello', ''),
          refusal: fc.constant('No.'),
          annotations: fc.constantFrom([], null, [{ type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 2 }]),
          logprobs: fc.constantFrom([], null, [{ token: 'hello', logprob: -0.5, bytes: [104], top_logprobs: [] }]),
        },
        { requiredKeys: ['type', 'text'] },
      ),
      { minLength: 1, maxLength: 2 },
    ),
  },
  { requiredKeys: ['type', 'content'] },
);
const response = fc.record(
  {
    id: fc.constant('resp_1'),
    status: fc.constantFrom('completed', 'completed', 'completed', 'incomplete'),
    model: fc.constantFrom('gpt-4o-2024-08-06', ''),
    error: fc.constant(null),
    incomplete_details: fc.constantFrom(null, { reason: 'max_output_tokens' }, { reason: 'content_filter' }),
    output: fc.array(message, { maxLength: 2 }),
    service_tier: fc.constantFrom('default', 'auto', 'priority', ''),
    moderation: fc.constantFrom(null, { flagged: false }),
    usage: fc.constantFrom(
      null,
      { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      { input_tokens: 30, input_tokens_details: { cached_tokens: 10 }, output_tokens: 2, output_tokens_details: { reasoning_tokens: 1 }, total_tokens: 32 },
      { input_tokens: -1 },
    ),
    metadata: fc.constant({}),
  },
  { requiredKeys: ['status', 'output'] },
);

const answering: ResponseBeingWritten = {
  response: queued({ model: 'x', input: 'hello' }, { id: 'resp_0123456789abcdefghijkl', created: 1_800_000_000 }, false),
  encrypted: false,
  sources: false,
  now: () => 1_800_000_001,
};

test('a response is read and written the same either way', () => {
  let plain = 0;
  fc.assert(
    fc.property(response, (body) => {
      const long = reader('m', ['a: b']).whole(body);
      const short = textAnswer(body, 'm', ['a: b']);
      if (short) expect(JSON.stringify(short)).toBe(JSON.stringify(long));
      const result = fold(long);
      const written = plainResponse(result, answering);
      if (!written) return;
      plain += short ? 1 : 0;
      const encoder = new Encoder({ ...answering, frame: noFrame });
      for (const event of long) encoder.encode(event);
      encoder.finish();
      expect(JSON.stringify(written)).toBe(JSON.stringify(encoder.response));
    }),
    { numRuns: 5000 },
  );
  expect(plain).toBeGreaterThan(0);
});
