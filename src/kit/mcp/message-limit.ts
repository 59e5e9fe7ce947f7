/**
 * Breaks a response when a JSON body, or an event of an event stream, is larger than `limit` (bytes): whoever reads it holds one of these in memory.
 *
 * @param ended called when an event stream has ended, or broken
 */
export function withMessageLimit(response: Response, limit: number, ended: () => void): Response {
  if (!response.body) return response;
  const isStream = (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');
  let size = 0;
  /** The last two bytes without carriage returns: an event ends with two line breaks. */
  let hadBreak = false;
  const limited = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      if (!isStream) size += chunk.length;
      else
        for (const byte of chunk) {
          size++;
          if (byte === carriageReturn) continue;
          if (byte === lineBreak && hadBreak) size = 0;
          hadBreak = byte === lineBreak;
        }
      if (size > limit) controller.error(new Error('A message is too large.'));
      else controller.enqueue(chunk);
    },
  });
  const [input, output] = [limited.writable, limited.readable];
  response.body
    .pipeTo(input)
    .catch(() => {}) // the reader gets the error
    .finally(() => {
      if (isStream) ended();
    });
  return new Response(output, { status: response.status, headers: response.headers });
}

const [lineBreak, carriageReturn] = [10, 13];
