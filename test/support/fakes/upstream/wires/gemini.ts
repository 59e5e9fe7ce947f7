import { pieces, type Asked, type Answer, type AnswerUsage, type ToolCall, type Wire } from '../wire.ts';
import { secretWord } from '../secret-word.ts';

/** Google's content generation: POST …/models/{model}:generateContent and its neighbours, of the Gemini API and of Vertex. */
export const gemini: Wire = {
  name: 'gemini',
  speaks: (method, path) => method === 'POST' && /\/models\/[^/?]+:(generateContent|streamGenerateContent\?alt=sse|batchEmbedContents|predict)$/.test(path),

  asked(body, path): Asked {
    const { contents, generationConfig } = (body ?? {}) as Body;
    const turns = Array.isArray(contents) ? contents : [];
    const { candidateCount, maxOutputTokens } = generationConfig ?? {};
    return {
      model: /\/models\/([^/?]+):/.exec(path)?.[1] ?? '',
      text: textOf(turns.findLast((one) => one?.role === 'user')?.parts),
      stream: path.includes(':streamGenerateContent'),
      usage: true,
      candidates: typeof candidateCount === 'number' ? candidateCount : 1,
      ...(typeof maxOutputTokens === 'number' ? { maxTokens: maxOutputTokens } : {}),
      promptTokens: turns.reduce((sum, one) => sum + pieces(textOf(one?.parts)).length, 0),
    };
  },

  whole({ candidates }, said) {
    const { thought, text, tools } = said;
    const parts = [
      ...(thought.length > 0 ? [{ text: thought.join(''), thought: true }] : []),
      ...(text.length > 0 ? [{ text: text.join('') }] : []),
      ...tools.map((one) => callPart(one, said.signature)),
    ];
    const all = Array.from({ length: candidates }, (_, index) => ({ content: { parts, role: 'model' }, ...finish(said), index }));
    return { candidates: all, ...usageMember(said.usage), ...envelope(said) };
  },

  frames({ candidates }, said) {
    const { thought, text, tools } = said;
    const parts = [
      ...thought.map((one) => ({ text: one, thought: true })),
      ...text.map((one) => ({ text: one })),
      ...tools.map((one) => callPart(one, said.signature)),
    ];
    const indexes = Array.from({ length: candidates }, (_, index) => index);
    return [
      ...parts.flatMap((part) => indexes.map((index) => frame({ candidates: [{ content: { parts: [part], role: 'model' }, index }], ...envelope(said) }))),
      ...indexes.map((index) =>
        frame({ candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, ...finish(said), index }], ...usageMember(said.usage), ...envelope(said) }),
      ),
    ];
  },

  fault(code, { model, ...words }) {
    const named = model === undefined ? {} : { message: `models/${model} is not found for API version v1beta` };
    const { message } = { message: 'The provider says no.', ...named, ...words };
    return { error: { code, message: `${message} (${secretWord})`, status: words.type ?? statuses[code] ?? 'INTERNAL' } };
  },

  faultFrame: (status, words) => frame(gemini.fault(status, words)),
};

interface Body {
  readonly contents?: unknown;
  readonly generationConfig?: { readonly candidateCount?: unknown; readonly maxOutputTokens?: unknown };
}

/** As the real one words them. */
const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

const frame = (value: object) => `data: ${JSON.stringify(value)}`;
const envelope = ({ id, model }: Answer) => ({ modelVersion: model, responseId: id });
const reasons = { stop: 'STOP', length: 'MAX_TOKENS', tool: 'STOP' } as const;

/** The Gemini API gives calls no id. */
const callPart = ({ name, json }: ToolCall, thoughtSignature = 'c2lnbmF0dXJl') => ({
  functionCall: { name, args: JSON.parse(json) as unknown },
  thoughtSignature,
});

function finish({ finish: told }: Answer): object {
  if (told === 'missing') return {};
  return { finishReason: 'raw' in told ? told.raw : reasons[told.reason] };
}

function usageMember(usage: AnswerUsage): object {
  if (usage.how === 'missing') return {};
  if (usage.how === 'null') return { usageMetadata: null };
  const { input, output, total } = usage.numbers;
  return { usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: total } };
}

function textOf(parts: unknown): string {
  return Array.isArray(parts) ? parts.map((part: { text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : '')).join('') : '';
}
