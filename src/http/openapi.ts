import type { TSchema } from 'typebox';
import { scopes, type Face, type Route } from './route.ts';

/** The OpenAPI 3.1 document of all routes, made from the values that check the requests. */
export function openApi(faces: readonly Face[], { version, server }: { version: string; server: string }) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const face of faces) {
    for (const route of face.routes) (paths[documented(route.path)] ??= {})[route.method.toLowerCase()] = operation(route, face);
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

function operation(route: Route, face: Face) {
  const inPath = Array.from(documented(route.path).matchAll(/\{(\w+)\}/g), ([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const asked = Object.entries(route.query?.properties ?? {}).map(([name, schema]) => {
    const { description } = schema as { readonly description?: string };
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema };
  });
  const parameters = [...inPath, ...asked, ...(route.spends ? [idempotencyKey] : [])];
  return {
    operationId: `${face.name}-${route.method.toLowerCase()}${route.path.replaceAll(/[^a-z0-9]+/gi, '-')}`.replace(/-$/, ''),
    summary: route.summary,
    tags: [face.name],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.input ? { requestBody: { required: true, content: json(route.input) } } : {}),
    responses: {
      [route.makes ? 201 : 200]: { description: route.makes ? 'Made.' : 'Done.', ...(route.output ? { content: json(route.output) } : {}) },
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

function json(schema: TSchema) {
  return { 'application/json': { schema } };
}
