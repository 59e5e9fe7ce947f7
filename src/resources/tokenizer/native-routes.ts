import { trimEnd } from '#kit/text/trim-end';
import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { modelNamed, type KnownModels } from '#core/known-models';
import { placesOf } from '#core/target';
import { nounRoute, type NounRoute } from '#http/noun-route';

export type Vocabulary = 'o200k' | 'cl100k';

export interface TokenizerDeps {
  readonly models: (caller: Caller) => KnownModels;
  readonly countTokens: (
    texts: readonly string[],
    asking: { readonly owner: string; readonly signal: AbortSignal; readonly vocabulary: Vocabulary },
  ) => Promise<number>;
}

/** The model of a request that names none. */
const usualModel = 'ada-002';

/** The tokens of a text, in the words of the native interface. */
export function tokenizerRoutes({ models, countTokens }: TokenizerDeps): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/tokenizer', {
      scope: 'query',
      owner: 'caller',
      summary: 'Counts the tokens of a text, as the model would; or the plan tokens that it would cost.',
      input: Type.Object({
        content: Type.String({ minLength: 1 }),
        model: Type.Optional(Type.String({ minLength: 1, maxLength: 200, default: usualModel })),
        convert_to_plan_tokens: Type.Optional(Type.Boolean({ default: false, description: 'Counts plan tokens: by the rates of the model.' })),
        completion_estimate: Type.Optional(
          Type.Number({ minimum: 0, maximum: 1e12, default: 0, description: 'Tokens of an answer, which are counted too when converting.' }),
        ),
        app_name: Type.Optional(Type.String({ maxLength: 200, description: 'Ignored.' })),
      }),
      output: Type.Object({
        response: Type.String({ description: 'A number.' }),
        estimated: Type.Optional(Type.Literal(true, { description: "The model's own tokens are not known: this is the count of another one." })),
      }),
      async answer({ caller, signal, input: { content, model: name = usualModel, convert_to_plan_tokens: converts = false, completion_estimate: more = 0 } }) {
        const known = modelNamed(models(caller), name);
        const names = known ? new Set(placesOf(known.targets).map(({ model }) => model)) : new Set([name]);
        const vocabularies = new Set([...names].map(vocabularyOf));
        const [vocabulary = 'o200k'] = vocabularies;
        const tokens = await countTokens([content], { owner: String(caller.userId), signal, vocabulary });
        const { input, output } = known?.rate ?? { input: 1, output: 1 };
        return {
          response: decimal(converts ? tokens * input + more * output : tokens),
          ...(vocabularies.size > 1 || vocabularies.has(undefined) ? { estimated: true } : {}),
        };
      },
    }),
  ];
}

/** Models by the beginning of their name, behind those of a vendor. https://github.com/openai/tiktoken/blob/main/tiktoken/model.py */
const vocabularies: readonly (readonly [RegExp, Vocabulary])[] = [
  [/^(gpt-4o|gpt-4\.[15]|gpt-5|chatgpt-4o|o[1-9]|gpt-oss|built-in)/, 'o200k'],
  [/^(ada-002|text-embedding-|gpt-4(-|$)|gpt-3\.5|gpt-35)/, 'cl100k'],
];

/** @returns undefined where the model's tokens are not public */
function vocabularyOf(model: string): Vocabulary | undefined {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return vocabularies.find(([form]) => form.test(name))?.[1];
}

/** Without an exponent, to a millionth. */
const decimal = (tokens: number): string => (Number.isInteger(tokens) ? String(BigInt(tokens)) : trimEnd(trimEnd(tokens.toFixed(6), '0'), '.'));
