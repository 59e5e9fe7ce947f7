import { describe, expect, test } from 'vitest';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { errorEvent, on, pace, rawJsonTail, stream, type Behaviour } from '../support/fakes/upstream/index.ts';
import { proves } from '../support/proves.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((upstream) => ({ yaml: everyWire(upstream) }));

const overloaded: Readonly<Record<Face, string>> = { chat: 'overloaded', responses: 'overloaded', messages: 'overloaded_error', gencompat: 'UNAVAILABLE' };

describe.each(['chat', 'responses', 'messages', 'gemini'] as const)('an error without the framing of events, in a stream of the wire of %s', (model) => {
  test.each([
    [503, 'overloaded'],
    [429, 'rate_limit_exceeded'],
  ])(proves(['F-10', 'S-02'], 'has its own status %i where nothing else was said'), async (status, code) => {
    upstream.script(rawJsonTail({ afterEvents: 0, status }));
    expect(await askFace(server, 'chat', { model, content: 'hello', stream: true })).toMatchObject({ status, error: code });
  });

  test.each(faces)(proves('F-10', 'is the error that ends the answer to a client of %s'), async (face) => {
    upstream.script(pace(5, rawJsonTail({ afterEvents: 5, status: 503 })));
    const { status, complete, error } = await askFace(server, face, { model, content: 'hello', stream: true });
    expect({ status, complete, error }).toEqual({ status: 200, complete: false, error: overloaded[face] });
  });
});

test.each(['chat', 'gemini'])('a list of one error, on one line of a stream of %s, has its own status', async (model) => {
  const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE', type: 'overloaded_error' };
  const list: Behaviour = on({}, { name: 'list', answer: () => stream([JSON.stringify([{ error }])]) });
  upstream.script(list);
  expect(await askFace(server, 'chat', { model, content: 'hello', stream: true })).toMatchObject({ status: 503, error: 'overloaded' });
});

test.each(['responses', 'messages'])('an error in a stream of %s that is no event of it has its own status', async (model) => {
  const error = { message: 'Too many requests.', type: 'rate_limit_error', code: 'rate_limit_exceeded' };
  upstream.script(on({}, { name: 'no event', answer: () => stream([`data: ${JSON.stringify({ error })}\n\n`]) }));
  expect(await askFace(server, 'chat', { model, content: 'hello', stream: true })).toMatchObject({ status: 429, error: 'rate_limit_exceeded' });
  upstream.script(errorEvent({ status: 429 }));
  expect(await askFace(server, 'chat', { model, content: 'hello', stream: true })).toMatchObject({ status: 429 });
});
