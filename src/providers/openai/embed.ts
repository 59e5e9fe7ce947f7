import { encodeRequest } from '#dialects/openai/embeddings/encode-request';
import { decodeResult, plainAnswer } from '#dialects/openai/embeddings/result';
import { dialect } from '#dialects/openai/embeddings/wire';
import { splice } from '#kit/json/scan';
import { purposesIgnored, unknownIgnored, type EmbedCall, type Embedded } from '#core/embed';
import type { TargetContext } from '#core/context';
import { wholeInPieces } from '../shared/post.ts';
import { attempt, type Endpoint, type ProviderRequest } from '../shared/attempt.ts';
import { hasTokens, withTexts } from '../shared/token-inputs.ts';
import { mayHaveModelsOfOpenAI, vendorOf } from '../vendors.ts';
import { openTokens, type Decode } from '#kit/tokens/index';

/** May a provider make vectors with this model? Those of OpenAI, which need no entry in the settings, are not everywhere. */
export const embedsAt = (baseUrl: string, model: string): boolean =>
  !/^text-embedding-(?:3-(?:small|large)|ada-002)$/.test(model) || mayHaveModelsOfOpenAI(baseUrl);

/** How a server's embeddings differ from the public description. */
export interface EmbedQuirks {
  /** It refuses to be told an encoding, and answers with numbers. */
  readonly withoutEncoding?: true;
  /** It reads no tokens, only texts. */
  readonly withoutTokens?: true;
}

/** A call, and how its tokens become texts for a server that does not read them; absent where there are none, or the server is OpenAI's. */
type Asked = EmbedCall & { readonly decode?: Decode };

export type EmbedEndpoint = Endpoint<Asked, ProviderRequest, EmbedQuirks>;

export const embedEndpoint = (deps: Omit<EmbedEndpoint, 'encode' | 'learn'>): EmbedEndpoint => ({
  ...deps,
  encode: (call, quirks) => requestOf(call, deps.model, quirks),
  learn: ({ details: { field = '', said = '' } }, { decode }, known) => {
    if (field === 'encoding_format') return known?.withoutEncoding ? undefined : { ...known, withoutEncoding: true };
    return decode && !known?.withoutTokens && /\binput\b/.test(`${field} ${said}`) ? { ...known, withoutTokens: true } : undefined;
  },
});

/** OpenAI's SDKs ask for base64 unless their callers ask for numbers. */
function requestOf({ decode, ...asked }: Asked, model: string, { withoutEncoding, withoutTokens }: EmbedQuirks = {}): ProviderRequest {
  const call = decode && withoutTokens ? withTexts(asked, decode) : asked;
  const passthrough = passthroughOf(call);
  if (passthrough && !withoutEncoding) return { body: splice(passthrough.body, passthrough.places, { model: JSON.stringify(model) }), ignored: [] };
  const body = JSON.stringify(encodeRequest(withoutEncoding ? { ...call, encoding: 'float' } : call, model));
  return { body, ignored: [...purposesIgnored(call), ...unknownIgnored(call)] };
}

const passthroughOf = ({ passthrough }: EmbedCall) => (passthrough?.dialect === dialect ? passthrough : undefined);

async function withDecoder(call: EmbedCall, baseUrl: string): Promise<Asked> {
  const vendor = vendorOf(baseUrl);
  if (!hasTokens(call) || vendor === 'openai' || vendor === 'azure') return call;
  const tokens = await openTokens();
  return { ...call, decode: await tokens.decoder() };
}

/** Embeddings. If the client speaks this dialect, its bytes are forwarded with the model name replaced, and those of the answer unparsed. @throws Fault */
export async function embed(endpoint: EmbedEndpoint, baseUrl: string, call: EmbedCall, context: TargetContext): Promise<Embedded> {
  const { model } = endpoint;
  const { response, request } = await attempt(endpoint, await withDecoder(call, baseUrl), context);
  try {
    const pieces = await wholeInPieces(response, context);
    const plain = passthroughOf(call) ? plainAnswer(pieces, call) : undefined;
    return { ...(plain ? { model, ...plain, answer: { pieces } } : await decodeResult(Buffer.concat(pieces), call, model)), ignored: request.ignored };
  } finally {
    response.leave();
  }
}
