const sentence = 'Please summarise the following text in two sentences and name the people in it. ';

/** A request for 256 embeddings as floats. */
export const embeddingsBody = JSON.stringify({
  model: 'text-embedding-3-small',
  encoding_format: 'float',
  input: Array.from({ length: 256 }, (_, at) => `${at}: ${sentence}`),
});

const proseOf = (bytes: number) => sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes - 150);

/** A chat request of about `bytes` bytes of JSON, always the same. */
export function chatBody({ bytes, stream = false, model = 'gpt-4o-mini' }: { bytes: number; stream?: boolean; model?: string }): string {
  const messages = [
    { role: 'system', content: 'You are a helpful assistant.' },
    { role: 'user', content: proseOf(bytes) },
  ];
  return JSON.stringify({ model, messages, temperature: 0.7, ...(stream && { stream }) });
}

/** A request for a response, of about 1 KB. @param store as the client sends it; absent: not sent */
export function responseBody({ stream = false, store }: { stream?: boolean; store?: boolean }): string {
  return JSON.stringify({ model: 'gpt-4o', instructions: 'You are a helpful assistant.', input: proseOf(1000), temperature: 0.7, stream, store });
}

/** A request for a message, of about 1 KB. */
export const messageBody = JSON.stringify({
  model: 'claude-haiku-4-5',
  max_tokens: 1000,
  system: 'You are a helpful assistant.',
  messages: [{ role: 'user', content: proseOf(1000) }],
  temperature: 0.7,
});

/** A Gemini request for content, of about 1 KB. */
export const contentBody = JSON.stringify({
  systemInstruction: { parts: [{ text: 'You are a helpful assistant.' }] },
  contents: [{ role: 'user', parts: [{ text: proseOf(1000) }] }],
  generationConfig: { temperature: 0.7 },
});
