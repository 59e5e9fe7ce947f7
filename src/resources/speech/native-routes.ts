import { Type, type Static } from 'typebox';
import type { Caller } from '#core/context';
import { Fault, invalid } from '#core/fault';
import { modelNamed, shownName, unknownModel, type KnownModels } from '#core/known-models';
import type { Speak, SpeakCall } from '#core/speak';
import { placesOf, type Model } from '#core/target';
import { nounRoute, Speech, type NounRoute } from '#http/noun-route';
import { nullable, optionalOrNull } from '#http/schemas';
import { spokenText } from '#kit/text/spoken-text';

export interface SpeechDeps {
  readonly speak: Speak;
  readonly models: (caller: Caller) => KnownModels;
  /** The model of a text that names none. */
  readonly defaultSpeech: () => string;
}

const word = (description: string) => optionalOrNull(Type.String({ maxLength: 256 }), { description });

const SpeechFields = Type.Object({
  text: Type.String({ minLength: 1, maxLength: 100_000, description: 'Markdown: its marks are not spoken.' }),
  voice: word('One of `list-tts-voices`; any other means the first of the model.'),
  model: word('Absent, `tts` or `tts-hd`: the speech model of the settings.'),
  provider: word('Chooses among the speech models by the name of their provider; `local`: the built-in one.'),
  language_code: word('The language of the text, such as `en-US`.'),
  app_name: word('For the books.'),
});

const Voice = Type.Object({
  voice: Type.String(),
  model: Type.String(),
  provider: Type.String(),
  language_code: nullable(Type.String(), { description: 'Null: whatever the text is in.' }),
});

/** Texts as sound, in the words of the native interface. */
export function speechRoutes(deps: SpeechDeps): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-text-to-speech', {
      scope: 'query',
      owner: 'caller',
      spends: true,
      summary: 'Speaks a text: the answer is the sound, from providers as MP3, from the built-in voice as WAV.',
      input: SpeechFields,
      sends: ['audio/mpeg', 'audio/wav', 'application/octet-stream'],
      answer: ({ caller, input }) =>
        new Speech({ call: callOf(input, deps, caller), speak: deps.speak, fieldNames: { input: 'text' }, app: input.app_name ?? undefined }),
    }),
    nounRoute('POST', '/server/list-tts-voices', {
      scope: 'query',
      owner: 'caller',
      summary: 'The voices that may speak.',
      output: Type.Object({ response: Type.Array(Voice), count: Type.Integer() }),
      answer({ caller }) {
        const voices = speaking(deps.models(caller)).flatMap(voicesOf);
        return { response: voices, count: voices.length };
      },
    }),
  ];
}

function callOf({ text, voice, model, provider, language_code: language }: Static<typeof SpeechFields>, deps: SpeechDeps, caller: Caller): SpeakCall {
  const spoken = spokenText(text);
  if (spoken === '') throw invalid('text', 'must have words in it');
  const chosen = chosenModel(model ?? '', provider ?? '', deps.models(caller), deps.defaultSpeech());
  const voices = placesOf(chosen.targets).map((target) => target.voices);
  const isKnown = voices.some((names) => names === undefined || names.includes(voice ?? ''));
  return { model: chosen.name, text: spoken, ...(voice && isKnown ? { voice } : {}), ...(language ? { language } : {}) };
}

/** Names by which clients of other servers mean the usual model. */
const anyModel = new Set(['', 'tts', 'tts-hd']);

function chosenModel(name: string, provider: string, models: KnownModels, usual: string): Model {
  const named = models.find(name);
  if (!anyModel.has(name) && named?.kind !== 'speech')
    throw new Fault('invalid', unknownModel(name, models, 'speech').message, { field: 'model', reason: 'model' });
  const own = named?.kind === 'speech' ? named : modelNamed(models, usual);
  if (provider === '') {
    if (own) return own;
    throw new Fault('invalid', unknownModel(usual, models, 'speech').message, { field: 'model', reason: 'model' });
  }
  const speaks = ({ targets }: Model) => placesOf(targets).some((target) => target.provider === (provider === 'local' ? 'built-in' : provider));
  const found = [...(own ? [own] : []), ...(named?.kind === 'speech' ? [] : speaking(models))].find(speaks);
  if (found) return found;
  throw new Fault('invalid', `provider: no speech model that you may use is of the provider ${shownName(provider)}.`, { field: 'provider' });
}

const speaking = (models: KnownModels): readonly Model[] => models.list().filter(({ kind }) => kind === 'speech');

/** Of a provider whose voices are not known, the name that all servers of its interface take. */
const usualVoice = 'alloy';

function voicesOf({ name, targets }: Model): readonly Static<typeof Voice>[] {
  const seen = new Set<string>();
  return placesOf(targets).flatMap(({ provider, voices = [usualVoice], residency }) =>
    voices.flatMap((voice) => {
      if (seen.has(voice)) return [];
      seen.add(voice);
      const isOwn = residency === 'here';
      return [{ voice, model: name, provider: isOwn ? 'local' : provider, language_code: isOwn ? 'en-US' : null }];
    }),
  );
}
