import type { TSchema } from 'typebox';
import { choiceHeaders } from '#core/choice-headers';
import { scopes, type Face, type Operation, type Route } from './route.ts';

/** The OpenAPI 3.1 document of all routes, made from the values that check the requests. */
export function openApi(faces: readonly Face[], { version, server }: { version: string; server: string }) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const face of faces) {
    for (const route of face.routes)
      for (const shown of route.operations ?? [{ ...route, path: documented(route.path) }])
        (paths[shown.path] ??= {})[route.method.toLowerCase()] = operation(shown, route, face);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Dragoman', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: server }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or access token.' },
        token: { type: 'apiKey', in: 'header', name: 'x-access-tokens', description: 'An API key or access token.' },
      },
    },
    'x-scopes': scopes,
  };
}

/** `/models/:id` and `/models/*` in the words of OpenAPI. */
function documented(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}').replace('*', '{id}');
}

function operation(shown: Operation, route: Route, face: Face) {
  const inPath = Array.from(shown.path.matchAll(/\{(\w+)\}/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const asked = Object.entries(route.query?.properties ?? {}).map(([name, schema]) => {
    const { description } = schema as { readonly description?: string };
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema };
  });
  const parameters = [...inPath, ...asked, ...(shown.spends ? [idempotencyKey, cacheSeconds, ...choices] : [])];
  return {
    operationId: `${face.name}-${route.method.toLowerCase()}${shown.path.replaceAll(/[^a-z0-9]+/gi, '-')}`.replace(/-$/, ''),
    summary: shown.summary,
    tags: [face.name],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(shown.input
      ? { requestBody: { required: true, content: route.takes === 'form' ? { 'multipart/form-data': { schema: shown.input } } : json(shown.input) } }
      : {}),
    responses: {
      [route.makes ? 201 : 200]: { description: route.makes ? 'Made.' : 'Done.', ...(shown.output ? { content: json(shown.output) } : {}) },
      default: { description: 'Refused, in the words of this interface.' },
    },
    ...(route.scope === 'public' ? { security: [] } : { security: [{ bearer: [] }, { token: [] }], 'x-scope': route.scope }),
  };
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
    'An answer made of text is kept for so many seconds, and an equal request of the same user gets it again, which costs nothing; 0 or no-store: neither. Without it the settings hold. The answer says x-dragoman-cache: hit or miss where one is kept.',
};

const choice = (name: string, description: string) => ({ name, in: 'header', required: false, schema: { type: 'string' }, description });

const choices = [
  choice(
    choiceHeaders.targets,
    'Names of models that the caller may use, with commas between them: they are tried in this order in place of the one that is asked for. Each is booked by itself, as steps of the request.',
  ),
  choice(choiceHeaders.tags, 'name=value,name=value: stands in the log, and usage is grouped by it (`groupBy=tag:name`).'),
  choice(
    choiceHeaders.strict,
    '`true`: what a target cannot honour is refused with 400 instead of being named in x-dragoman-warnings, and no larger model stands in.',
  ),
];

function json(schema: TSchema) {
  return { 'application/json': { schema } };
}
