import { Type } from 'typebox';
import { encodeFaultFrame } from '#dialects/openai/chat/faults';
import { bodyFault } from '#dialects/shared/read-fields';
import { checked } from '#kit/json/check';
import type { JsonObject } from '#core/json';
import type { Speak, SpeakCall } from '#core/speak';
import { Speech } from '#http/noun-route';
import type { Asked, Route } from '#http/route';
import { optionalOrNull } from '#http/schemas';
import { answerSpeech } from '../answer-speech.ts';
import { unlabelled, type GeneratingDeps } from '../answer.ts';
import { membersOf } from '../other-case.ts';
import { root } from './root.ts';

export interface SpeechDeps extends Pick<GeneratingDeps, 'limits'> {
  readonly speak: Speak;
  /** The model where the request names none. */
  readonly defaultSpeech: () => string;
}

const SpeechFields = Type.Object({
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: '^[\\x20-\\x7e]+$' })),
  input: Type.String({ minLength: 1, maxLength: 100_000 }),
  voice: Type.Optional(Type.Union([Type.String({ minLength: 1 }), Type.Object({})])),
  instructions: optionalOrNull(Type.String({ maxLength: 100_000 })),
  response_format: optionalOrNull(Type.String({ maxLength: 100 })),
  speed: optionalOrNull(Type.Number()),
  stream_format: optionalOrNull(Type.String({ maxLength: 100 })),
});

const members = membersOf(SpeechFields.properties);
const fieldsOf = checked(SpeechFields, bodyFault);

export function speechRoute(deps: SpeechDeps): Route {
  return {
    method: 'POST',
    path: `${root}/audio/speech`,
    scope: 'passthrough',
    owner: 'caller',
    spends: true,
    summary: 'Speaks a text. The built-in voice answers with WAV, whatever format is asked for.',
    input: SpeechFields,
    sends: [...['mpeg', 'wav', 'opus', 'aac', 'flac', 'pcm'].map((format) => `audio/${format}`), 'application/octet-stream', 'text/event-stream'],
    answer: (asked) => {
      const { app, call } = decoded(asked, deps.defaultSpeech);
      return answerSpeech({ ...deps, faultFrame: encodeFaultFrame }, asked, 'chatcompat', new Speech({ call, speak: deps.speak, app }));
    },
  };
}

function decoded({ json, bytes, places }: Asked, defaultSpeech: () => string): { readonly app: string | undefined; readonly call: SpeakCall } {
  const { app, body } = unlabelled(json, members);
  const { model = defaultSpeech(), input, voice, instructions, response_format: format, speed, stream_format: streamed } = fieldsOf(body);
  return {
    app,
    call: {
      model,
      text: input,
      ...(voice === undefined ? {} : { voice: voice as string | JsonObject }),
      ...(typeof instructions === 'string' ? { instructions } : {}),
      ...(typeof format === 'string' ? { format } : {}),
      ...(typeof speed === 'number' ? { speed } : {}),
      ...(streamed === 'sse' ? { asEvents: true } : {}),
      ...(body === json ? { passthrough: { bytes, places } } : {}),
    },
  };
}
