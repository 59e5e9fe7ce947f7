import { Type, type Static } from 'typebox';
import { nullable, optionalOrNull } from '#http/schemas';
import { catalogueDate } from '#core/catalogue-date';
import { outcomesOf, type Field } from '#core/capabilities';
import { abilities, placesOf, type Model } from '#core/target';

const tokens = nullable(Type.Integer());
const rates = {
  input: Type.Number({ description: 'A million tokens of the prompt.' }),
  output: Type.Number({ description: 'A million tokens of the answer.' }),
  cached: Type.Optional(Type.Number({ description: 'A million tokens of the prompt that the provider had read before; absent: as the rest of it.' })),
  cacheWrite: Type.Optional(
    Type.Number({ description: 'A million tokens of the prompt that the provider writes into its cache for some minutes; absent: as the rest of it.' }),
  ),
  cacheWrite1h: Type.Optional(Type.Number({ description: 'The same for an hour; absent: as for some minutes.' })),
};
const price = Type.Object({
  ...rates,
  long: Type.Optional(Type.Object({ above: Type.Integer({ description: 'Tokens of the prompt.' }), ...rates })),
  picture: Type.Optional(Type.Number({ description: 'One picture that is made, beside the tokens.' })),
  second: Type.Optional(Type.Number({ description: 'One second of sound that is written down or spoken, beside the tokens.' })),
  character: Type.Optional(Type.Number({ description: 'One character that is spoken, beside the tokens.' })),
  search: Type.Optional(Type.Number({ description: 'One web search by the provider, beside the tokens.' })),
  searchedAnswer: Type.Optional(Type.Number({ description: 'One answer with web searches by the provider, however many, beside the tokens.' })),
});

/** What we say of a model beside what its interface has words for. What is unknown is null. */
export const ModelDescription = Type.Object(
  {
    kind: Type.Enum(['chat', 'embedding', 'speech', 'moderation']),
    limits: Type.Object({ context: tokens, output: tokens }, { description: 'Tokens: prompt and answer together, and the answer.' }),
    price: nullable(price, { description: 'US dollars, at the dearest of its targets.' }),
    abilities: nullable(Type.Array(Type.Enum([...abilities]))),
    larger: nullable(Type.String(), { description: 'The model that answers where a conversation is too long for this one.' }),
    catalogue: Type.String({ description: 'The day of the catalogue: from it comes what the settings do not say.' }),
    targets: Type.Array(
      Type.Object({
        provider: Type.String(),
        model: Type.String({ description: "The model's name there." }),
        regions: Type.Optional(Type.Array(Type.String())),
        price: optionalOrNull(price, { description: 'US dollars, where targets differ.' }),
        learned: Type.Optional(
          Type.Object(
            {
              fields: Type.Array(Type.String(), { description: 'The fields that it refused, as the provider calls them.' }),
              learned: Type.Record(Type.String(), Type.Unknown()),
              until: Type.String({ description: 'ISO 8601.' }),
            },
            { description: 'What the provider taught about the model by refusing requests: how they changed, and until when that holds.' },
          ),
        ),
        fields: Type.Optional(
          Type.Record(Type.String(), Type.Object({ fate: Type.Enum(['carried', 'translated', 'ignored']), note: Type.Optional(Type.String()) }), {
            description:
              'What becomes of each field of a request there. What is ignored is told in x-dragoman-warnings too; a note of a field that is translated, where it comes true.',
          }),
        ),
      }),
    ),
  },
  { description: 'What this server knows of the model.' },
);

/** @param dialect of the interface that shows it. @param names the fields of its requests, each as a call has it */
export function described(model: Model, dialect: string, names: Readonly<Record<string, Field | undefined>>): Static<typeof ModelDescription> {
  const { kind, limits, price, larger, targets } = model;
  return {
    kind,
    limits: { context: limits.context ?? null, output: limits.output ?? null },
    price: price ?? null,
    abilities: model.abilities ? [...model.abilities] : null,
    larger: larger ?? null,
    catalogue: catalogueDate,
    targets: targets.map((group) => {
      const { provider, model: name, supports, lesson } = group.target;
      const regions = placesOf([group]).flatMap(({ region }) => region ?? []);
      return {
        provider,
        model: name,
        ...(regions.length > 0 ? { regions } : {}),
        ...(group.price === undefined ? {} : { price: group.price }),
        ...(lesson ? { learned: { fields: [...lesson.fields], learned: lesson.learned, until: new Date(lesson.until).toISOString() } } : {}),
        ...(kind === 'chat' && supports ? { fields: outcomesOf(supports, dialect, names) } : {}),
      };
    }),
  };
}
