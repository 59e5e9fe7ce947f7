/** Google's cloud platform, at the addresses of two regions: Gemini in one, Claude in the other. */
import { anthropicMessages } from '../upstream/wires/anthropic-messages.ts';
import type { Wire } from '../upstream/wire.ts';
import { anthropic } from './anthropic.ts';
import { google } from './google.ts';
import { first, list, rule, type Any, type Rule, type Vendor } from './vendor.ts';

const gemini = google.wires.gemini!;
const messages = anthropic.wires.messages!;

export const vertex: Vendor = {
  ...google,
  name: 'vertex',
  wires: {
    gemini: {
      ...gemini,
      rules: [
        rule('calls have no ids', 'https://github.com/googleapis/python-genai/issues/1062', ({ body }) =>
          first<Any, string>(body.contents, ({ parts }, at) =>
            first<Any, string>(list(parts), ({ functionCall, functionResponse }, place) => {
              const [name, value] = functionCall ? ['function_call', functionCall] : ['function_response', functionResponse ?? {}];
              return 'id' in value && `Invalid JSON payload received. Unknown name "id" at 'contents[${at}].parts[${place}].${name}': Cannot find field.`;
            }),
          ),
        ),
        ...gemini.rules,
      ],
    },
  },
};

/** The model is in the path. https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai */
const predicted: Wire = {
  ...anthropicMessages,
  speaks: (method, path) => method === 'POST' && modelPath.test(path),
  asked: (body, path) => ({ ...anthropicMessages.asked(body, path), model: modelPath.exec(path)?.[1] ?? '', stream: path.endsWith(':streamRawPredict') }),
};
const modelPath = /\/publishers\/anthropic\/models\/([^/:]+):(?:streamRawPredict|rawPredict)$/;

const versioned: Rule = rule(
  'the version is in the body, and the model is not',
  'https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai',
  ({ body: { anthropic_version: version, model } }) =>
    version === 'vertex-2023-10-16' ? model !== undefined && 'model: Extra inputs are not permitted' : 'anthropic_version: Field required',
);

export const vertexClaude: Vendor = {
  ...anthropic,
  name: 'vertex-claude',
  wires: { messages: { ...messages, wire: predicted, rules: [versioned, ...messages.rules.map(withoutVersion)] } },
};

function withoutVersion({ refuses, ...others }: Rule): Rule {
  return {
    ...others,
    refuses(ask) {
      const { anthropic_version: _, anthropic_beta: __, ...body } = ask.body;
      return refuses({ ...ask, body });
    },
  };
}
