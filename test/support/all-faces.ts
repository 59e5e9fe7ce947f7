import type { Served } from './members.ts';

/** The outcome of a request to one of the interfaces, whole or streamed, in the same form for all of them. */
export interface FaceAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The raw body. */
  readonly raw: string;
  /** The text that a reader sees. */
  readonly text: string;
  /** The error code of a refusal, or of the last frame of a stream. */
  readonly error: string;
  /** True for a whole answer, or a stream with its end marker. */
  readonly complete: boolean;
}

export interface AskingFace {
  readonly model: string;
  readonly content: string;
  readonly stream: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly more?: object;
}

export type Face = 'chat' | 'responses' | 'messages' | 'gencompat';

export const faces: readonly Face[] = ['chat', 'responses', 'messages', 'gencompat'];

/** Every interface, streamed and not streamed. */
export const everyWay: readonly (readonly [Face, boolean])[] = faces.flatMap((face) => [[face, false] as const, [face, true] as const]);

/** Sends a request to one of the four interfaces. */
export async function askFace({ url, key }: Served, face: Face, asking: AskingFace): Promise<FaceAnswer> {
  const { path, body } = requestOf(face, asking);
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'x-access-tokens': key, 'content-type': 'application/json', ...asking.headers },
    body: JSON.stringify(body),
  });
  const raw = await answer.text();
  const values = asking.stream && answer.status === 200 ? framesOf(raw) : [JSON.parse(raw) as Value];
  const complete = answer.status === 200 && (!asking.stream || ends[face](values, raw));
  return { status: answer.status, headers: answer.headers, raw, text: values.map((value) => saidIn(value)).join(''), error: errorIn(values), complete };
}

/** What an interface calls a field. */
export const spelled = (face: string, field: keyof typeof spellings): string => spellings[field][face as Face];

const spellings = {
  reasoning_effort: { chat: 'reasoning_effort', responses: 'reasoning.effort', messages: 'thinking', gencompat: 'generationConfig.thinkingConfig' },
  response_format: { chat: 'response_format', responses: 'text.format', messages: 'output_config.format', gencompat: 'generationConfig.responseJsonSchema' },
  max_tokens: { chat: 'max_tokens', responses: 'max_output_tokens', messages: 'max_tokens', gencompat: 'generationConfig.maxOutputTokens' },
  temperature: { chat: 'temperature', responses: 'temperature', messages: 'temperature', gencompat: 'generationConfig.temperature' },
  top_p: { chat: 'top_p', responses: 'top_p', messages: 'top_p', gencompat: 'generationConfig.topP' },
  stop: { chat: 'stop', responses: 'stop', messages: 'stop_sequences', gencompat: 'generationConfig.stopSequences' },
} as const;

type Value = Readonly<Record<string, unknown>>;

export function requestOf(face: Face, { model, content, stream, more = {} }: AskingFace): { readonly path: string; readonly body: object } {
  switch (face) {
    case 'chat':
      return { path: '/server/chatcompat/v1/chat/completions', body: { model, stream, messages: [{ role: 'user', content }], ...more } };
    case 'responses':
      return { path: '/server/chatcompat/v1/responses', body: { model, stream, input: content, ...more } };
    case 'messages':
      return { path: '/server/messages/v1/messages', body: { model, stream, max_tokens: 1000, messages: [{ role: 'user', content }], ...more } };
    case 'gencompat':
      return {
        path: `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: { contents: [{ role: 'user', parts: [{ text: content }] }], ...more },
      };
    default:
      return face satisfies never;
  }
}

const framesOf = (raw: string): readonly Value[] => [...raw.matchAll(/^data: (\{.*\})\r?$/gm)].map(([, json]) => JSON.parse(json!) as Value);

/** What a stream contains only if it is complete. */
const ends: Readonly<Record<Face, (values: readonly Value[], raw: string) => boolean>> = {
  chat: (_, raw) => raw.includes('data: [DONE]'),
  responses: (values) => values.some(({ type }) => type === 'response.completed'),
  messages: (values) => values.some(({ type }) => type === 'message_stop'),
  gencompat: (values) => values.some((value) => JSON.stringify(value).includes('"finishReason"')),
};

/** All text in the answers of these wires, except what the responses wire repeats. */
function saidIn(value: unknown): string {
  if (Array.isArray(value)) return value.map(saidIn).join('');
  if (value === null || typeof value !== 'object') return '';
  const { type } = value as Value;
  if (typeof type === 'string' && /^response\.(?!output_text\.delta)/.test(type)) return '';
  if (type === 'response.output_text.delta') return String((value as Value)['delta']);
  return Object.entries(value)
    .map(([name, inner]) => ((name === 'text' || name === 'content') && typeof inner === 'string' ? inner : saidIn(inner)))
    .join('');
}

function errorIn(values: readonly Value[]): string {
  const errors = values.flatMap((value) => {
    const error = value['error'] as Value | null | undefined;
    return error ? [String(error['status'] ?? error['code'] ?? error['type'])] : [];
  });
  return errors.at(-1) ?? '';
}
