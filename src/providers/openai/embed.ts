import { encodeRequest } from '#dialects/openai/embeddings/encode-request';
import { decodeResult, plainAnswer } from '#dialects/openai/embeddings/result';
import { dialect } from '#dialects/openai/embeddings/wire';
import { splice } from '#kit/json/scan';
import { purposesIgnored, type EmbedCall, type Embedded } from '#core/embed';
import type { TargetContext } from '#core/context';
import { wholeInPieces } from '../shared/post.ts';
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
  const { response } = await attempt(endpoint, call, context);
  try {
    const pieces = await wholeInPieces(response, context);
    const plain = passthroughOf(call) ? plainAnswer(pieces, call) : undefined;
    return plain ? { model, ignored: [], ...plain, answer: { pieces } } : await decodeResult(Buffer.concat(pieces), call, model);
  } finally {
    response.leave();
  }
}
