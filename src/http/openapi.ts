import type { TObject, TSchema } from 'typebox';
import { Fault } from '#core/fault';
import { choiceHeaders } from '#core/choice-headers';
import type { Json } from '#core/json';
import { capital, schemaOf, withNamedSchemas } from './openapi-schemas.ts';
import { addressesOf, scopes, type Alias, type Face, type Operation, type Route } from './route.ts';

/** Requests and their answers, by the id of the operation. */
export type Examples = Readonly<Record<string, { readonly request?: unknown; readonly answer?: unknown }>>;

interface About {
  readonly version: string;
  readonly server: string;
  readonly examples: Examples;
}

/** The OpenAPI 3.1 document of all routes, made from the values that check the requests. */
export function openApi(faces: readonly Face[], { version, server, examples }: About) {
  const paths: Record<string, Record<string, unknown>> = {};
  const named: { readonly name: string; readonly schema: object }[] = [];
  for (const face of faces) {
    named.push({ name: `${capital(face.name)}Error`, schema: errorOf(face) });
    for (const route of face.routes)
      for (const { method, path, headers } of addressesOf(route).filter(({ isHidden }) => !isHidden))
        for (const shown of route.operations ?? [{ ...route, suffix: '' }]) {
          const address = documented(path, restOf(route)) + shown.suffix;
          const methods = (paths[address] ??= {});
          if (headers && Object.hasOwn(methods, method.toLowerCase())) continue; // the document has one entry for both
          methods[method.toLowerCase()] = operation(shown, { route, face, method, path, ...(headers ? { headers } : {}) }, examples);
          if (shown.input) named.push({ name: schemaName(face, { method, path }, shown, 'Request'), schema: shown.input });
          if (shown.output) named.push({ name: schemaName(face, { method, path }, shown, 'Answer'), schema: shown.output });
          const accepted = shown.others?.[202];
          if (accepted) named.push({ name: schemaName(face, { method, path }, shown, 'Accepted'), schema: accepted });
        }
  }
  const described = withNamedSchemas(paths, named);
  return {
    openapi: '3.1.0',
    info: { title: 'Dragoman', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: server }],
    paths: described.document as typeof paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or access token.' },
        ...Object.fromEntries(
          ['x-access-tokens', 'x-api-key', 'x-goog-api-key'].map((name) => [
            name,
            { type: 'apiKey', in: 'header', name, description: 'The same, in another header.' },
          ]),
        ),
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-dragoman',
          description:
            'The cookie of `POST /server/session`; over plain http its name is `dragoman`. It counts where none of the others is sent. What changes something must then come from a page of this server (`Origin`, else `Sec-Fetch-Site`), with a body that is JSON or application/octet-stream.',
        },
      },
      schemas: described.schemas,
    },
    'x-scopes': scopes,
  };
}

/** `ChatcompatChatCompletionsRequest` */
function schemaName(
  face: Face,
  { method, path }: Pick<Alias, 'method' | 'path'>,
  { suffix }: { suffix: string },
  what: 'Request' | 'Answer' | 'Accepted',
): string {
  const root = face.roots.find((one) => path.startsWith(`${one}/`)) ?? '';
  const own = path.slice(root.length).replace(/^\/v1(beta)?(?=\/)/, '');
  const words = documented(own, 'id').replaceAll(/\{(\w+)\}/g, suffix === '' ? 'by $1' : '');
  return capital(`${face.name} ${method === 'POST' ? '' : method.toLowerCase()} ${words}${suffix} ${what}`);
}

/** A refusal that names a field, one that names none, and one that says when to try again. */
const samples = [
  new Fault('invalid', 'temperature must be between 0 and 2.', { field: 'temperature' }),
  new Fault('unauthenticated', 'A key is needed.'),
  new Fault('rate-limited', 'Wait a second.', { retryAfter: 1 }),
];

const errorOf = (face: Face): object =>
  schemaOf(...samples.map((fault) => JSON.parse(JSON.stringify(face.refusal(fault, 'req_0123456789abcdefghijkl'))) as Json), ...(face.otherRefusals ?? []));

/** `/models/:id` and `/models/*` in the words of OpenAPI. */
const documented = (path: string, rest: string): string => path.replace(/:(\w+)/g, '{$1}').replace('*', `{${rest}}`);

const restOf = ({ operations }: Route): string => (operations ? 'model' : 'id');

interface At extends Alias {
  readonly route: Route;
  readonly face: Face;
}

function operation(shown: Operation, { route, face, method, path, headers = [] }: At, examples: Examples) {
  const rest = restOf(route);
  const address = documented(path, rest) + shown.suffix;
  const inPath = Array.from(address.matchAll(/\{(\w+)\}/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const fieldsInQuery = method === 'GET' ? propertiesOf(shown.input) : {}; // where a POST is asked as GET
  const asked = Object.entries({ ...route.query?.properties, ...fieldsInQuery }).map(([name, schema]) => {
    const { description } = schema as { readonly description?: string };
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema };
  });
  const meant = headers.map((name) => ({
    name,
    in: 'header',
    required: true,
    schema: { type: 'string' },
    description: 'Without it the address is that of another interface.',
  }));
  const parameters = [...inPath, ...asked, ...meant, ...(shown.spends ? [idempotencyKey, cacheSeconds, ...choices] : [])];
  const own = documented(route.path, rest) + shown.suffix;
  const main = operationIdOf(face.name, route.method, own);
  const word = operationIdOf(face.name, method, address);
  const id = word === main && address !== own ? `${word}-alias` : word; // addresses that differ in `-` and `_` alone
  const example = examples[main];
  return {
    operationId: id,
    summary: shown.summary,
    tags: [face.name],
    ...(id === main ? {} : { 'x-alias-of': main }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(shown.input && method !== 'GET'
      ? { requestBody: { required: route.takes !== 'forms', content: withExample(bodiesOf(route, shown.input), example?.request) } }
      : {}),
    responses: {
      ...answersOf(shown, route, example?.answer),
      ...Object.fromEntries(statusesOf(shown, route, address).map((status) => [status, { description: refusals[status], content: json(errorOf(face)) }])),
      ...Object.fromEntries(
        Object.entries(route.refusesWith ?? {}).map(([status, description]) => [
          status,
          { description, content: contentOf({ sends: shown.sends ?? [] }, undefined) },
        ]),
      ),
      default: { description: 'Refused, in the words of this interface.', content: json(errorOf(face)) },
    },
    ...(route.scope === 'public'
      ? { security: [] }
      : {
          security: [{ bearer: [] }, ...['x-access-tokens', 'x-api-key', 'x-goog-api-key', 'session'].map((name) => ({ [name]: [] }))],
          'x-scope': route.scope,
        }),
  };
}

const furtherAnswers: Readonly<Record<string, string>> = { 202: 'Accepted: the work goes on.', 204: 'Done, without a body.' };

/** What is answered when all is well, by status. */
function answersOf(shown: Operation, { makes }: Route, example: unknown): Readonly<Record<string, object>> {
  const { output, sends, others = {} } = shown;
  const isDescribed = output !== undefined || sends !== undefined;
  const further = Object.entries(others).map(([status, schema]) => [
    status,
    {
      description: furtherAnswers[status] ?? 'Not ready.',
      ...(status === '204' ? {} : { content: isDescribed ? json(schema) : withExample(json(schema), example) }),
    },
  ]);
  const usual = { description: makes ? 'Made.' : 'Done.', ...(isDescribed ? { content: contentOf(shown, example) } : {}) };
  return { ...(isDescribed || further.length === 0 ? { [makes ? 201 : 200]: usual } : {}), ...Object.fromEntries(further) };
}

/** The types of the answer: JSON, and those of a stream or of bytes, which no schema describes. */
function contentOf({ output, outputType, sends = [] }: Pick<Operation, 'output' | 'outputType' | 'sends'>, example: unknown) {
  const whole = outputType ?? 'application/json';
  return {
    ...(output ? withExample({ [whole]: { schema: output } }, example) : {}),
    ...Object.fromEntries(
      sends
        .filter((type) => !(output && type === whole))
        .map((type) => [type, { schema: textType.test(type) ? { type: 'string' } : { type: 'string', format: 'binary' } }]),
    ),
  };
}

const textType = /^text\/|json$/;

const propertiesOf = (input: TSchema | undefined) => (input as TObject | undefined)?.properties ?? {};
/** What each status means, for every interface. */
const refusals = {
  400: 'A field is wrong or missing: the message names it.',
  401: 'The key is missing or not valid.',
  403: 'The key lacks the scope, or is for other models.',
  404: 'There is no such thing, or it is not yours.',
  408: 'The body arrives too slowly.',
  409: 'It is in use, is there already, or has been changed: the message says which.',
  413: 'The body is too large.',
  415: 'The body has another type than this address takes, or is compressed.',
  422: 'A file cannot be read, or another request was sent with this Idempotency-Key.',
  429: 'A limit is reached: the message names it, and Retry-After says when to try again.',
  501: 'No provider here does this.',
  502: 'The provider failed, or refused.',
  503: 'Too much is going on, here or at the provider: try again after Retry-After.',
  504: 'The provider took too long.',
} as const;

type RefusalStatus = keyof typeof refusals;

function statusesOf(shown: Pick<Operation, 'spends' | 'input'>, route: Route, address: string): readonly RefusalStatus[] {
  const all: readonly (readonly [boolean, readonly RefusalStatus[]])[] = [
    [shown.input !== undefined || route.query !== undefined, [400]],
    [route.scope !== 'public', [401]],
    [route.scope === 'public' && shown.input !== undefined, [401, 429]], // a credential is in the body
    [route.scope !== 'public' && route.scope !== 'any', [403]],
    [/\{/.test(address) || route.owner === 'admin' || shown.spends === true, [404]],
    [shown.input !== undefined, [408, 413, 415]],
    [changesThings(route), [409]],
    [shown.spends === true, [422, 429, 501, 502, 503, 504]],
  ];
  return all.flatMap(([does, statuses]) => (does ? statuses : []));
}

/** May what it changes be in use, or be changed by others meanwhile? Conversations with models change nothing, and neither does what GET does too. */
const changesThings = (route: Route): boolean =>
  route.owner !== 'nobody' && !(route.spends && route.scope === 'passthrough') && addressesOf(route).every(({ method }) => method !== 'GET');

function operationIdOf(face: string, method: string, address: string): string {
  const words = address.replace(/\/$/, '/slash').replaceAll(/[^a-z0-9]+/gi, '-');
  return `${face}-${method.toLowerCase()}${words}`.replace(/-$/, '');
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  description:
    'The request is answered once; sent again with the same key it gets the same answer for 24 hours, with x-dragoman-replayed: true, and costs nothing. Another request with the key is refused with 422. A request that failed frees its key.',
};

const cacheSeconds = {
  name: choiceHeaders.cache,
  in: 'header',
  required: false,
  schema: { type: 'string', pattern: '^(\\d{1,7}|no-store)$' },
  description:
    'Seconds for which an answer made of text is cached: an identical request of the same user gets it again, which costs nothing. 0 or no-store: not cached. Without it the settings apply. The answer says x-dragoman-cache: hit or miss where one is kept.',
};

const choice = (name: string, description: string) => ({ name, in: 'header', required: false, schema: { type: 'string' }, description });

const choices = [
  choice(
    choiceHeaders.targets,
    'Names of models that the caller may use, with commas between them: they are tried in this order in place of the one that is asked for. Each is booked by itself, as steps of the request.',
  ),
  choice(choiceHeaders.tags, 'name=value,name=value: is logged, and usage is grouped by it (`groupBy=tag:name`).'),
  choice(
    choiceHeaders.strict,
    '`true`: what a target cannot honour is refused with 400 instead of being named in x-dragoman-warnings, so is a field that the native interface would ignore, and no larger model stands in.',
  ),
];

const formTypes = {
  multipart: ['multipart/form-data'],
  forms: ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'],
  files: ['multipart/form-data', 'application/octet-stream'],
} as const;

const bodiesOf = ({ takes }: Route, schema: TSchema) => (takes ? Object.fromEntries(formTypes[takes].map((type) => [type, { schema }])) : json(schema));

function withExample(content: Readonly<Record<string, object>>, example: unknown) {
  if (example === undefined) return content;
  return Object.fromEntries(
    Object.entries(content).map(([type, one]) => [type, type === 'application/json' || type === 'text/plain' ? { ...one, example } : one]),
  );
}

const json = (schema: object) => ({ 'application/json': { schema } });
