import { isRecord } from './definitions.ts';

interface Rule {
  readonly kind: 'string' | 'object';
  readonly isOptional?: true;
}

const cursor = { cursor: { kind: 'string', isOptional: true } } as const;

/** The params of the requests that are answered, by their paths. */
const rules: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  initialize: {
    protocolVersion: { kind: 'string' },
    capabilities: { kind: 'object' },
    clientInfo: { kind: 'object' },
    'clientInfo.name': { kind: 'string' },
    'clientInfo.version': { kind: 'string' },
  },
  'tools/list': cursor,
  'tools/call': { name: { kind: 'string' }, arguments: { kind: 'object', isOptional: true } },
  'prompts/list': cursor,
  'prompts/get': { name: { kind: 'string' }, arguments: { kind: 'object', isOptional: true } },
  'resources/list': cursor,
  'resources/templates/list': cursor,
  'resources/read': { uri: { kind: 'string' } },
};

/** What is wrong with the params of a request, naming the member. Undefined: nothing, or the method is not known. */
export function wrongParams({ method, params }: { readonly method?: unknown; readonly params?: unknown }): string | undefined {
  const known = typeof method === 'string' && Object.hasOwn(rules, method) ? rules[method]! : {};
  for (const [path, { kind, isOptional }] of Object.entries(known)) {
    const value = path.split('.').reduce<unknown>((within, name) => (isRecord(within) ? within[name] : undefined), params);
    if (value === undefined && isOptional) continue;
    if (value === undefined) return `params.${path} is required.`;
    if (kind === 'string' ? typeof value !== 'string' : !isRecord(value)) return `params.${path} must be ${kind === 'string' ? 'a string' : 'an object'}.`;
  }
  return undefined;
}
