import { largeBytes, writeLargeJson } from '#kit/json/large';
import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';

/** The JSON body of a request: serialized at once, or in several turns of the event loop if the call contains megabytes of pictures, sounds or files. */
export function written({ turns }: Pick<GenerateCall, 'turns'>, body: unknown): string | Promise<Uint8Array> {
  let bytes = 0;
  for (const { parts } of turns) for (const part of parts) bytes += mediaBytes(part);
  return bytes > largeBytes ? writeLargeJson(body) : JSON.stringify(body);
}

function mediaBytes(part: Part): number {
  if (part.type === 'media') return part.base64?.length ?? part.url?.length ?? 0;
  return part.type === 'tool-result' ? part.parts.reduce((sum, inner) => sum + mediaBytes(inner), 0) : 0;
}
