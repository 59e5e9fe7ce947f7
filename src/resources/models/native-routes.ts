import { Type } from 'typebox';
import type { Caller } from '#core/context';
import type { KnownModels } from '#core/known-models';
import type { Ability, Model } from '#core/target';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';

export interface ModelListDeps {
  readonly models: (caller: Caller) => KnownModels;
  /** The other names of a model. */
  readonly aliasesOf: (name: string) => readonly string[];
}

const format = Type.Optional(Type.Enum(['keys', 'full'], { description: '`keys` (the default): names alone; `full`: what is known of each.' }));
const textOrNull = nullable(Type.String());
/** A limit that is not known: clients count with an integer. */
const noLimit = Number.MAX_SAFE_INTEGER;

const NamedModel = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Literal('na'),
  name: Type.String(),
  owned_by: Type.String(),
});

const FullModel = Type.Object({
  id: Type.String(),
  display_name: Type.String(),
  vendor: Type.String(),
  tier: nullable(Type.Enum(['standard', 'flagship', 'fast', 'economy'])),
  aliases: Type.Array(Type.String()),
  capabilities: Type.Array(Type.Enum(['text', 'vision_input', 'audio_input', 'video_input'])),
  cui_capable: Type.Boolean(),
  paid_only: Type.Boolean(),
  date_added: textOrNull,
  limits: Type.Object({ max_context: Type.Integer(), max_output: Type.Integer() }, { description: `Tokens; ${noLimit} where no limit is known.` }),
  token_conversion_rate: nullable(Type.Object({ prompt: Type.Number(), completion: Type.Number() }), {
    description: 'Plan tokens for a model token.',
  }),
  deprecation: Type.Object({ state: Type.Enum(['active', 'deprecated', 'sunset']), message: textOrNull, replacement_id: textOrNull, sunset_at: textOrNull }),
});

/** The models that answer, in the words of the native interface. */
export function modelListRoutes({ models, aliasesOf }: ModelListDeps): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-models', {
      scope: 'any',
      owner: 'caller',
      summary: 'The models that may be asked.',
      query: Type.Object({ format }),
      input: Type.Object({ format }),
      inputMayBeLeftOut: true,
      output: Type.Object({
        response: Type.Union([Type.Array(Type.String()), Type.Array(FullModel)]),
        object: Type.Optional(Type.Literal('list')),
        data: Type.Union([Type.Array(NamedModel), Type.Array(FullModel)]),
      }),
      answer({ caller, query, input }) {
        const chat = models(caller)
          .list()
          .filter(({ kind }) => kind === 'chat');
        if ((query.format ?? input.format) === 'full') {
          const full = chat.map((model) => described(model, aliasesOf(model.name)));
          return { response: full, data: full };
        }
        return {
          response: chat.map(({ name }) => name),
          object: 'list',
          data: chat.map(({ name, ownedBy }) => ({ id: name, object: 'model', created: 'na', name, owned_by: ownedBy })),
        };
      },
    }),
  ];
}

/** What models of a tier are called there. */
const tiers = { flash: 'fast', pro: 'flagship' } as const;
const seeing: readonly (readonly [Ability, 'vision_input' | 'audio_input' | 'video_input'])[] = [
  ['vision', 'vision_input'],
  ['audio', 'audio_input'],
  ['video', 'video_input'],
];

function described({ name, ownedBy, tier, abilities = [], limits, rate }: Model, aliases: readonly string[]) {
  return {
    id: name,
    display_name: name,
    vendor: ownedBy,
    tier: tier ? tiers[tier] : null,
    aliases: [...aliases],
    capabilities: ['text', ...seeing.flatMap(([ability, word]) => (abilities.includes(ability) ? [word] : []))],
    cui_capable: false,
    paid_only: false,
    date_added: null,
    limits: { max_context: limits.context ?? noLimit, max_output: limits.output ?? noLimit },
    token_conversion_rate: { prompt: rate.input, completion: rate.output },
    deprecation: { state: 'active', message: null, replacement_id: null, sunset_at: null },
  };
}
