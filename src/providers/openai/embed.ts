import { encodeRequest } from '#dialects/openai/embeddings/encode-request';
import { decodeResult, ends, passes, usageAtEnd } from '#dialects/openai/embeddings/result';
import { dialect } from '#dialects/openai/embeddings/wire';
import { forwardedTurnBytes, type UpstreamResponse } from '#kit/upstream/response';
import { splice } from '#kit/json/scan';
import { purposesIgnored, type EmbedCall, type Embedded, type Passing } from '#core/embed';
import type { TargetContext } from '#core/context';
import { upstreamFault, whole } from '../shared/post.ts';
import { attempt, type Endpoint, type ProviderRequest } from '../shared/attempt.ts';
import { notHonoured } from '#core/fault';
import { mayHaveModelsOfOpenAI } from '../vendors.ts';

/** May a provider make vectors with this model? Those of OpenAI, which need no entry in the settings, are not everywhere. */
export const embedsAt = (baseUrl: string, model: string): boolean =>
  !/^text-embedding-(?:3-(?:small|large)|ada-002)$/.test(model) || mayHaveModelsOfOpenAI(baseUrl);

/** How a server's embeddings differ from the public description. */
export interface EmbedQuirks {
  /** It refuses to be told an encoding, and answers with numbers. */
  readonly withoutEncoding?: true;
}

export type EmbedEndpoint = Endpoint<EmbedCall, ProviderRequest, EmbedQuirks>;

export const embedEndpoint = (deps: Omit<EmbedEndpoint, 'encode' | 'learn'>): EmbedEndpoint => ({
  ...deps,
  encode: (call, quirks) => ({ body: bodyOf(call, deps.model, quirks), ignored: [] }),
  learn: ({ details: { field } }, _, known) => (field === 'encoding_format' && !known?.withoutEncoding ? { withoutEncoding: true } : undefined),
});

/** OpenAI's SDKs ask for base64 unless their callers ask for numbers. */
function bodyOf(call: EmbedCall, model: string, { withoutEncoding }: EmbedQuirks = {}): Uint8Array | string {
  const passthrough = passthroughOf(call);
  if (passthrough && !withoutEncoding) return splice(passthrough.body, passthrough.places, { model: JSON.stringify(model) });
  return JSON.stringify(encodeRequest(withoutEncoding ? { ...call, encoding: 'float' } : call, model));
}

const passthroughOf = ({ passthrough }: EmbedCall) => (passthrough?.dialect === dialect ? passthrough : undefined);

/** Embeddings. If the client speaks this dialect, its bytes are forwarded with the model name replaced, and those of the answer unparsed. @throws Fault */
export async function embed(endpoint: EmbedEndpoint, call: EmbedCall, context: TargetContext): Promise<Embedded> {
  const { model } = endpoint;
  const [ignored] = purposesIgnored(call);
  if (context.strict && ignored !== undefined) throw notHonoured([ignored]);
  const passthrough = passthroughOf(call);
  const { response } = await attempt(endpoint, call, context);
  let isPassing = false;
  try {
    const first = await beginning(response);
    if (passthrough && passes(first, call.encoding)) {
      isPassing = true;
      return { model, ignored: [], answer: passing(response, first) };
    }
    return decodeResult(Buffer.concat([first, await whole(response, context)]), call, model);
  } finally {
    if (!isPassing) response.leave();
  }
}

/** Enough bytes to recognize the form of the answer. */
async function beginning(response: UpstreamResponse): Promise<Uint8Array> {
  let first: Uint8Array = new Uint8Array(0);
  try {
    while (first.length < ends.head) {
      const more = await response.take();
      if (!more) break;
      first = first.length === 0 ? more : Buffer.concat([first, more]);
    }
    return first;
  } catch (error) {
    throw upstreamFault(error, true);
  }
}

/** Forwards each chunk on arrival, except the end of the answer: a truncated or malformed answer must not look complete. */
function passing(response: UpstreamResponse, first: Uint8Array): Passing {
  return {
    async pass(sink) {
      const held: Uint8Array[] = [];
      let bytesHeld = 0;
      const give = (bytes: Uint8Array): boolean => {
        held.push(bytes);
        bytesHeld += bytes.length;
        let ready = true;
        while (bytesHeld - held[0]!.length >= ends.tail) {
          const piece = held.shift()!;
          bytesHeld -= piece.length;
          ready = sink.write(piece) && ready;
        }
        return ready;
      };
      try {
        if (!give(first)) await sink.drained();
        await response.pipe((bytes) => {
          const ready = give(bytes);
          if (!ready) void sink.drained().then(() => response.resume());
          return ready;
        }, forwardedTurnBytes);
      } catch (error) {
        throw upstreamFault(error, true);
      }
      const end = Buffer.concat(held);
      const usage = usageAtEnd(end);
      sink.write(end);
      return usage;
    },
    leave: () => response.leave(),
  };
}
