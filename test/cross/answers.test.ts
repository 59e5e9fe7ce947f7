import { describe, expect, test } from 'vitest';
import type { GenerateEvent } from '#core/event';
import { fold, type GenerateResult } from '#core/fold';
import { chatReader, geminiReader, messagesReader, responsesReader, seenIn, type Reader, type Seen, type SeenCandidate } from './seen.ts';
import { chat, gemini, messages, responses, wires, type CrossedWire } from './wires.ts';

/** Faces × wires: what any recorded provider said is what any client reads, streamed and whole. */

interface Face {
  readonly wire: CrossedWire;
  readonly reader: Reader;
  /** What clients of this wire can be told of a candidate. */
  told(candidate: SeenCandidate, result: GenerateResult): SeenCandidate;
  /** The same of a whole answer; absent: as of a stream. */
  toldWhole?(candidate: SeenCandidate): SeenCandidate;
  /** It has one answer. */
  readonly alone?: true;
}

/** Words of refusal are text where the wire has no place for them. */
const inText = ({ text, refusal, ...candidate }: SeenCandidate): SeenCandidate => ({ ...candidate, text: text + refusal, refusal: '' });

const faces: readonly Face[] = [
  { wire: chat, reader: chatReader, told: (candidate, result) => withoutOurIds(candidate, result, chat) },
  {
    wire: responses,
    reader: responsesReader,
    alone: true,
    // A refusal in words is an answer that was completed. Sounds have no item, but their words are text.
    told: ({ finish, media, ...candidate }, result) => ({
      ...withWords(candidate, result),
      media: hasSound(result) ? '' : media,
      finish: finish === 'refused' && candidate.refusal !== '' ? 'stop' : finish,
    }),
  },
  {
    wire: messages,
    reader: messagesReader,
    alone: true,
    told: (candidate, result) => ({ ...withWords(withImageNote(inText(candidate), result), result), media: '', logprobs: [] }),
    toldWhole: withoutCutCalls,
  },
  { wire: gemini, reader: geminiReader, told: (candidate, result) => inText(withoutCutCalls(withoutOurIds(candidate, result, gemini))) },
];

const recorded = wires.flatMap((wire) => [
  ...wire.recordings.answered.map(({ name, bytes }) => ({ wire, name: `${wire.name}: stream ${name}`, said: () => wire.readStream(bytes) })),
  ...wire.recordings.wholes.map(({ name, body }) => ({ wire, name: `${wire.name}: whole ${name}`, said: () => wire.readWhole(body) })),
]);

/** Calls that came without an id go without one to whoever knows such: Google's, and those of chat's older form. */
function withoutOurIds(candidate: SeenCandidate, { candidates }: GenerateResult, wire: CrossedWire): SeenCandidate {
  const parts = candidates.flatMap((one) => one.parts.filter((part) => part.type === 'tool-call'));
  const note = wire === gemini ? '.unnamed' : '.function_call';
  const ours = new Set(parts.filter(({ extra }) => extra?.[wire.name]?.[note]).map((part) => part.id));
  return { ...candidate, calls: candidate.calls.map((call) => (ours.has(call.id) ? { ...call, id: '' } : call)) };
}

const withWords = <Told extends Pick<SeenCandidate, 'text'>>(candidate: Told, { candidates }: GenerateResult): Told => {
  const words = candidates.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'media' ? (part.transcript ?? []) : [])));
  return { ...candidate, text: candidate.text + words.join('') };
};

/** Arguments that broke off are no object, so a call of them is left out. */
function withoutCutCalls(candidate: SeenCandidate): SeenCandidate {
  const isCut = candidate.finish === 'length' || candidate.finish === 'refused';
  return isCut ? { ...candidate, calls: candidate.calls.filter((call) => typeof call.arguments !== 'string') } : candidate;
}

const wholeOf = ({ toldWhole }: Face, { candidates, usage }: Seen): Seen => ({ candidates: toldWhole ? candidates.map(toldWhole) : candidates, usage });

const hasSound = ({ candidates }: GenerateResult) => candidates.some(({ parts }) => parts.some((part) => part.type === 'media' && part.kind === 'audio'));

/** Who has no images in answers is told that there is one. */
const withImageNote = (candidate: SeenCandidate, { candidates }: GenerateResult): SeenCandidate =>
  candidates.some(({ parts }) => parts.some((part) => part.type === 'media' && part.kind === 'image'))
    ? { ...candidate, text: `${candidate.text}[image/png, 9 bytes: answers of this interface hold no images]` }
    : candidate;

function wantedBy({ told, alone }: Face, result: GenerateResult): Seen {
  const { candidates, usage } = seenIn(result);
  const list = candidates.map((one) => told(one, result));
  return { candidates: alone ? list.slice(0, 1) : list, usage };
}

describe.each(faces)('a client of $wire.name', (face) => {
  test.each(recorded)('reads $name', ({ said }) => {
    const events = said();
    const result = fold(events);
    const wanted = wantedBy(face, result);
    expect(face.reader.streamed(face.wire.sayStream(events))).toEqual(wanted);
    expect(face.reader.whole(face.wire.sayWhole(result))).toEqual(wholeOf(face, wanted));
  });
});

/** Recorded from real providers: their wire's own clients read them too. */
const genuine = wires.flatMap((wire) => {
  const { reader } = faces.find((face) => face.wire === wire)!;
  const isGenuine = ({ name }: { readonly name: string }) => !name.startsWith('handmade/') && !name.startsWith('vercel/stream-'); // those have arguments in pieces of values
  return [
    ...wire.recordings.answered.filter(isGenuine).map(({ name, bytes }) => ({
      name: `${wire.name}: stream ${name}`,
      read: () => reader.streamed(Buffer.from(bytes).toString()),
      events: () => wire.readStream(bytes),
    })),
    ...wire.recordings.wholes
      .filter(isGenuine)
      .map(({ name, body }) => ({ name: `${wire.name}: whole ${name}`, read: () => reader.whole(body), events: () => wire.readWhole(body) })),
  ].map((one) => ({ ...one, wire }));
});

describe('what the server reads in an answer is what a client of that wire reads in it', () => {
  test.each(genuine)('$name', ({ read, events, wire }) => {
    const face = faces.find((one) => one.wire === wire)!;
    expect(wantedBy(face, fold(events()))).toEqual(read());
  });
});

describe.each(faces)('a client of $wire.name', (face) => {
  test.each(Array.from({ length: 400 }, (_, seed) => seed))('reads pieces in whatever order they come: %i', (seed) => {
    const events = mixed(seed);
    const wanted = wantedBy(face, fold(events));
    expect(face.reader.streamed(face.wire.sayStream(events))).toEqual(wanted);
    expect(face.reader.whole(face.wire.sayWhole(fold(events)))).toEqual(wanted);
  });
});

/** An answer whose texts, thoughts and several calls come piece by piece in turn. */
function mixed(seed: number): readonly GenerateEvent[] {
  const draw = drawing(seed);
  const events: GenerateEvent[] = [{ type: 'started', model: 'm', ignored: [] }];
  const words = ['one ', 'two ', '"', '\n', 'é'];
  let calls = 0; // they are counted as they begin
  const open = Array.from({ length: draw(4) }, (_, at) => ({ call: -1, left: ['{"a', '":', `${at}`, '}'] }));
  for (let left = 3 + draw(12); left > 0 || open.length > 0; left--) {
    const kind = left > 0 ? draw(6) : 5;
    const text = words[draw(words.length)]!;
    if (kind === 0 || kind === 1) events.push({ type: 'text', candidate: 0, text });
    if (kind === 2) events.push({ type: 'thought', candidate: 0, text });
    if (kind === 3) events.push({ type: 'thought', candidate: 0, text: '', extra: { [wires[draw(4)]!.name]: { signature: 's' } } });
    const one = open[draw(open.length)];
    if (kind < 4 || !one) continue;
    const begun = one.call >= 0;
    if (!begun) one.call = calls++;
    const json = begun || draw(2) === 1 ? one.left.shift()! : '';
    events.push({ type: 'tool-call', candidate: 0, call: one.call, id: `c${one.call}`, json, ...(begun ? {} : { name: `look${one.call}` }) });
    if (one.left.length === 0) open.splice(open.indexOf(one), 1);
  }
  events.push({ type: 'finished', candidate: 0, reason: events.some(({ type }) => type === 'tool-call') ? 'tool' : 'stop', raw: '' });
  return [...events, { type: 'usage', usage: { input: 9, output: draw(99), source: 'provider' } }];
}

/** Numbers below a bound, the same for the same seed. */
function drawing(seed: number): (bound: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (bound) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor((((state ^ (state >>> 13)) >>> 0) / 2 ** 32) * bound);
  };
}
