import type { TSchema } from 'typebox';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import type { JsonText } from '#kit/json/scan';
import { tooLarge } from './arriving.ts';
import { readBody, refuseCompressed, type BodyLimits } from './body.ts';
import { coerced, fieldOfText, isLeftOut, takesJson } from './coerce.ts';
import type { Exchange } from './exchange.ts';
import { readFileBody } from './file-body.ts';
import { readMultipart, type MultipartForm } from './multipart.ts';
import type { Route } from './route.ts';
import { heldInMemory, type UploadedFile, type Uploads } from './uploads.ts';
import { urlencodedFields } from './urlencoded.ts';

export interface FormDeps {
  readonly limits: () => BodyLimits;
  readonly clock: Clock;
  readonly uploads: Uploads;
  /** @throws Fault `invalid` */
  readonly parse: (bytes: Uint8Array) => JsonText | Promise<JsonText>;
}

export interface FormBody {
  readonly json: unknown;
  readonly bytes: Uint8Array;
  readonly files: readonly UploadedFile[];
  /** Removes the files, when the request is answered. */
  remove(): Promise<void>;
}

type Described = Pick<Route, 'takes' | 'input' | 'scope'>;

const nothing = { bytes: new Uint8Array(0), files: [], remove: () => Promise.resolve() };

/** The body of a request to a route that takes forms. @throws Fault `invalid`, `too-large`, `unsupported-type`, `slow-client`, `overloaded` */
export async function readForm(exchange: Exchange, route: Described, deps: FormDeps): Promise<FormBody> {
  const type = exchange.header('content-type');
  const kind = kindOf(type);
  const { bodyBytes } = deps.limits();
  if (kind !== 'multipart' && route.takes !== 'files' && Number(exchange.header('content-length') ?? 0) > bodyBytes) throw tooLarge(bodyBytes);
  if (route.takes === 'multipart' && kind !== 'multipart') throw notMultipart();
  if (exchange.method === 'GET' || exchange.method === 'HEAD' || isEmpty(exchange)) return { json: {}, ...nothing };
  refuseCompressed(exchange);
  if (kind === 'multipart') return multipart(exchange, { ...route, type: type! }, deps);
  if (route.takes === 'files') return wholeFile(exchange, type ?? '', deps);
  if (kind === 'other') throw notAccepted();
  const bytes = await readBody(exchange, deps.limits(), deps.clock, kind === 'json' ? 'json' : 'form');
  exchange.signal.throwIfAborted();
  exchange.bodyBytes = bytes.length;
  exchange.need(bytes.length); // what is made of them holds about as much again
  if (bytes.length === 0) return { json: {}, ...nothing };
  if (kind === 'json') return { ...nothing, json: (await deps.parse(bytes)).value, bytes };
  return { ...nothing, json: await valuesOf(await urlencodedFields(bytes), route.input, deps), bytes };
}

async function multipart(exchange: Exchange, { takes, input, scope, type }: Described & { readonly type: string }, deps: FormDeps): Promise<FormBody> {
  const { bodyBytes, fileBytes, bodyIdleSeconds } = deps.limits();
  const inMemory = takes === 'multipart' || scope === 'public';
  const form = await readMultipart(exchange, {
    type,
    limits: inMemory ? { fileBytes: bodyBytes, bodyBytes, bodyIdleSeconds } : { fileBytes, bodyIdleSeconds },
    uploads: inMemory ? heldInMemory(exchange) : deps.uploads,
    clock: deps.clock,
  });
  try {
    exchange.signal.throwIfAborted();
    const text = fieldOfText(
      form.files.map(({ field }) => field),
      input,
    );
    if (text !== undefined) throw new Fault('invalid', `${text} must be text, not a file.`, { field: text });
    const bytes = standIn(form);
    exchange.bodyBytes = bytes.length + form.files.reduce((sum, { size }) => sum + size, 0);
    return { json: await valuesOf(form.fields, input, deps), bytes, files: form.files, remove: () => form.remove() };
  } catch (error) {
    await form.remove();
    throw error;
  }
}

/** The bytes of one file, without a name. */
async function wholeFile(exchange: Exchange, type: string, deps: FormDeps): Promise<FormBody> {
  const { file, remove } = await readFileBody(exchange, { type, limits: deps.limits(), uploads: deps.uploads, clock: deps.clock });
  exchange.bodyBytes = file.size;
  return { json: {}, bytes: Buffer.from(file.hash), files: [file], remove };
}

/** What two equal forms have in common, whatever their boundaries are. */
function standIn({ fields, files }: MultipartForm): Uint8Array {
  return Buffer.from(JSON.stringify({ fields, files: files.map(({ field, filename, type, hash }) => ({ field, filename, type, hash })) }));
}

/** The values of the fields; a large text that may be JSON is parsed apart, so that others have their turn. */
async function valuesOf(fields: MultipartForm['fields'], schema: TSchema | undefined, { parse }: FormDeps): Promise<Record<string, unknown>> {
  const large = new Map<string, unknown>();
  const read = async (text: string): Promise<unknown> => {
    try {
      return (await parse(Buffer.from(text))).value;
    } catch (error) {
      if (error instanceof Fault && error.code === 'invalid') return undefined;
      throw error;
    }
  };
  for (const [name, text] of fields) if (takesJson(schema, name.replace(/\[\]$/, '')) && /^\s*[[{]/.test(text)) large.set(text, await read(text));
  const given = fields.filter((field) => !isLeftOut(schema, field));
  return coerced(given, schema, (text) => large.get(text));
}

const isEmpty = (exchange: Exchange): boolean => exchange.header('transfer-encoding') === undefined && Number(exchange.header('content-length') ?? 0) === 0;

function kindOf(type: string | undefined): 'json' | 'urlencoded' | 'multipart' | 'other' {
  const essence = (type ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (essence === 'multipart/form-data') return 'multipart';
  if (essence === 'application/x-www-form-urlencoded') return 'urlencoded';
  return essence === '' || essence === 'application/json' || (essence.startsWith('application/') && essence.endsWith('+json')) ? 'json' : 'other';
}

const notMultipart = () => new Fault('unsupported-type', 'The body must be a form: send Content-Type: multipart/form-data.');
const notAccepted = () =>
  new Fault(
    'unsupported-type',
    'The body must be JSON or a form: send Content-Type: application/json, application/x-www-form-urlencoded or multipart/form-data.',
  );
