const sentence = 'Please summarise the following text in two sentences and name the people in it. ';

/** JSON of a request for 256 embeddings, as floats. */
export const embeddingsBody = JSON.stringify({
  model: 'text-embedding-3-small',
  encoding_format: 'float',
  input: Array.from({ length: 256 }, (_, at) => `${at}: ${sentence}`),
});

/** JSON of a chat request of about so many bytes, always the same. */
export function chatBody({ bytes, stream = false }: { bytes: number; stream?: boolean }): string {
  const messages = [
    { role: 'system', content: 'You are a helpful assistant.' },
    { role: 'user', content: sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes - 150) },
  ];
  return JSON.stringify({ model: 'gpt-4o-mini', messages, temperature: 0.7, ...(stream && { stream }) });
}
