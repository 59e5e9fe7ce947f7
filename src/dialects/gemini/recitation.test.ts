import { expect, test } from 'vitest';
import { fold } from '#core/fold';
import { decoder } from './decoder.ts';
import { encoder } from './encoder.ts';
import { eventFraming } from './framing.ts';
import { decodeResult, encodeResult } from './result.ts';

/** Sources of recited text reach clients of this wire as they came. https://ai.google.dev/api/generate-content#citationmetadata */

const chunk = (text: string, citationMetadata: object, finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, citationMetadata, ...(finishReason ? { finishReason } : {}) }],
  modelVersion: 'm',
  responseId: 'r',
});
const source = (uri: string, startIndex: number) => ({ startIndex, endIndex: startIndex + 3, uri, license: 'MIT' });
const [one, other] = [source('https://a.example/', 0), source('https://b.example/', 4)];

test.each(['citationSources', 'citations'])('under the name %s, whole and streamed, and no search is made of them', (name) => {
  const whole = encodeResult(fold(decodeResult(chunk('One two', { [name]: [one, other] }, 'STOP'), 'm')), { id: 'x' });
  expect(whole).toMatchObject({ candidates: [{ citationMetadata: { [name]: [one, other] } }] });

  const reading = decoder('m');
  const chunks = [chunk('One ', { [name]: [one] }), chunk('two', { [name]: [other] }, 'STOP')];
  const events = [...chunks.flatMap((each) => reading.decode(JSON.stringify(each))), ...reading.end()];
  const writing = encoder({ id: 'x', framing: eventFraming() });
  const frames = [...events.map((event) => writing.encode(event)), writing.end()].join('').split('data: ');
  const last: unknown = JSON.parse(frames.at(-1)!);
  expect(last).toMatchObject({ candidates: [{ citationMetadata: { [name]: [one, other] } }] });

  for (const { candidates } of [whole, last] as { candidates: object[] }[]) {
    expect(Object.keys((candidates[0] as { citationMetadata: object }).citationMetadata)).toEqual([name]);
    expect(candidates[0]).not.toHaveProperty('groundingMetadata');
  }
});

test.each(['citationSources', 'citations'])('under the name %s they are citations for all other wires', (name) => {
  const [candidate] = fold(decodeResult(chunk('One two', { [name]: [one] }, 'STOP'), 'm')).candidates;
  expect(candidate?.parts).toMatchObject([{ text: 'One two', citations: [{ url: one.uri, start: 0, end: 3 }] }]);
});
