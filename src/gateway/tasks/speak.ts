import type { Generate } from '#core/generate';
import type { Call } from '#core/routed-call';
import { countsOfSpeech, type SoundSink, type Speak, type SpeakCall } from '#core/speak';
import type { Task } from '#core/task';

/** A second of speech has some 20 tokens, and about 15 bytes of English or of Chinese are said in it; slow speech takes more. */
const tokensPerByte = 2;

/** Speech through the gateway: the sound goes to the sink as it comes. */
export function speaking(generate: Generate<Call>): Speak {
  return async (call, sound, context) => {
    let ignored: readonly string[] = [];
    const open: SoundSink['open'] = (head) => sound.open({ ...head, ignored }); // what rules add to it is known when the sound begins
    const sink: SoundSink = { open, write: (bytes) => sound.write(bytes), drained: () => sound.drained() };
    for await (const events of generate(taskOf(call, sink), context)) for (const event of events) if (event.type === 'started') ({ ignored } = event);
  };
}

function taskOf(call: SpeakCall, sound: SoundSink): Task {
  const { model, text, instructions } = call;
  return {
    model,
    kind: 'other',
    of: 'speech',
    stream: call.asEvents === true,
    sampling: {},
    texts: instructions === undefined ? [text] : [text, instructions],
    tokens: 0,
    counts: countsOfSpeech(text),
    most: { input: 0, output: Buffer.byteLength(text) * tokensPerByte },
    withTexts([changed = '', ...others]) {
      const { passthrough: _, instructions: __, ...rest } = call;
      return taskOf({ ...rest, text: changed, ...(others[0] === undefined ? {} : { instructions: others[0] }) }, sound);
    },
    able: (target) => target.speak !== undefined,
    unable: 'No provider here speaks with this model. For the built-in voice, name the model `built-in-speech`.',
    ask: (target, context) => target.speak!(call, sound, context),
  };
}
