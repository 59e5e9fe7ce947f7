import type { UpstreamResponse } from '#kit/upstream/response';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import type { TargetContext } from '#core/context';
import { refusalText } from './post.ts';
import type { KeyRing } from './keys.ts';
import type { KnownQuirks } from './known-quirks.ts';
import { written } from './write-request.ts';

/** How a provider is asked, and what its refusals say. */
export interface AttemptDeps<Quirks> {
  readonly keys: KeyRing;
  readonly quirks: KnownQuirks<Quirks>;
  readonly model: string;
  readonly call: Pick<GenerateCall, 'turns'>;
  encode(known: Quirks | undefined): { readonly body: unknown; readonly ignored: readonly string[] };
  send(body: string | Uint8Array, key: string | undefined): Promise<UpstreamResponse>;
  refusal(status: number, text: string, headers: UpstreamResponse['headers'], model: string): Fault;
  /** What the model can do without, where that is why it refused and was not known. */
  quirkOf(fault: Fault, known: Quirks | undefined): Quirks | undefined;
}

/**
 * Asks with one key after the other until one is taken; otherwise than before where the model refused a field and can do without, which is remembered if that helps.
 *
 * @throws Fault of the last refusal; `invalid` where the client is strict and a field cannot be honoured
 */
export async function attempt<Quirks>(
  { keys, quirks, model, call, encode, send, refusal, quirkOf }: AttemptDeps<Quirks>,
  { strict }: TargetContext,
): Promise<{ response: UpstreamResponse; ignored: readonly string[] }> {
  const turns = [...keys.inTurn()];
  let known = quirks.of(model);
  let learned = false;
  for (let key = turns.shift(); ;) {
    const { body, ignored } = encode(known);
    if (strict && ignored.length > 0) throw new Fault('invalid', `Not every field can be honoured: ${ignored.join('; ')}.`);
    const json = written(call, body);
    const response = await send(typeof json === 'string' ? json : await json, key);
    if (response.status === 200) {
      if (learned && known) quirks.keep(model, known);
      return { response, ignored };
    }
    const fault = refusal(response.status, await refusalText(response), response.headers, model);
    const quirk = quirkOf(fault, known);
    if (quirk) {
      known = quirk;
      learned = true;
    } else {
      if (fault.details.key && key !== undefined) keys.setAside(key);
      if (!fault.details.key || turns.length === 0) throw fault;
      key = turns.shift();
    }
  }
}
