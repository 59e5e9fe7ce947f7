import { expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** A search asked for in the words of one API, as providers of another get it. https://platform.openai.com/docs/guides/tools-web-search */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const place = { city: 'London', region: 'London', country: 'GB', timezone: 'Europe/London' };
const near = { type: 'approximate', ...place };

const asked: Readonly<Partial<Record<Face, object>>> = {
  chat: { web_search_options: { search_context_size: 'low', user_location: { type: 'approximate', approximate: place } } },
  responses: { tools: [{ type: 'web_search', search_context_size: 'low', user_location: near }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search', user_location: near }] },
};

const ask = async (face: Face, model: string, headers: Readonly<Record<string, string>> = {}) => {
  upstream.script(always(ok()));
  const answer = await askFace(server, face, { model, content: 'hi', stream: false, headers, more: asked[face]! });
  const { tools } = (upstream.requests.at(-1)?.json ?? {}) as { readonly tools?: readonly object[] };
  return { tools, status: answer.status, warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
};

test.each(['chat', 'responses', 'messages'] as const)('of %s clients: a responses provider gets the place and the size', async (face) => {
  const size = face === 'messages' ? {} : { search_context_size: 'low' };
  expect(await ask(face, 'responses', { 'x-dragoman-strict': 'true' })).toEqual({
    status: 200,
    warnings: '',
    tools: [{ type: 'web_search', user_location: near, ...size }],
  });
});

test.each(['chat', 'responses', 'messages'] as const)('of %s clients: a messages provider gets the place, and a size is warned of', async (face) => {
  const { tools, warnings } = await ask(face, 'messages');
  expect(tools).toEqual([{ type: 'web_search_20250305', name: 'web_search', user_location: near }]);
  expect(warnings.includes('tools.web_search.search_context_size: ')).toBe(face !== 'messages');
  expect(warnings).not.toContain('user_location');
});

test.each(['chat', 'responses', 'messages'] as const)('of %s clients: Gemini searches without them, with a warning', async (face) => {
  const { tools, warnings } = await ask(face, 'gemini');
  expect(tools).toEqual([{ googleSearch: {} }]);
  expect(warnings).toContain('tools.web_search.user_location: ');
  expect((await ask(face, 'gemini', { 'x-dragoman-strict': 'true' })).status).toBe(400);
});

const unreadable: Readonly<Partial<Record<Face, object>>> = {
  chat: { web_search_options: { search_context_size: 'as much as there is of it', user_location: 'Berlin' } },
  responses: { tools: [{ type: 'web_search', search_context_size: 'as much as there is of it', user_location: 'Berlin' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search', user_location: 'Berlin' }] },
};

test.each([
  ['chat', 'responses'],
  ['chat', 'gemini'],
  ['responses', 'messages'],
  ['responses', 'gemini'],
  ['messages', 'responses'],
  ['messages', 'gemini'],
] as const)('of %s clients: what cannot be read of it is warned of by a %s provider', async (face, model) => {
  upstream.script(always(ok()));
  const { headers } = await askFace(server, face, { model, content: 'hi', stream: false, more: unreadable[face]! });
  const warnings = headers.get('x-dragoman-warnings') ?? '';
  expect(warnings).toContain('tools.web_search.user_location: ');
  if (face !== 'messages') expect(warnings).toContain('tools.web_search.search_context_size: ');
});

test.each([
  ['messages', 'responses', { max_uses: 'five', allowed_domains: 'example.org' }, ['max_uses', 'allowed_domains']],
  ['messages', 'gemini', { max_uses: -1, blocked_domains: ['a.example', 5] }, ['max_uses', 'blocked_domains']],
  ['messages', 'responses', { user_location: { type: 'approximate', city: 5, country: 'GB' } }, ['user_location']],
  ['responses', 'messages', { filters: { allowed_domains: { host: 'a.example' } } }, ['filters.allowed_domains']],
  ['responses', 'messages', { filters: { blocked_domains: Array.from({ length: 101 }, (_, at) => `${at}.example`) } }, ['filters.blocked_domains']],
  ['responses', 'messages', { filters: 'example.org', external_web_access: 'no' }, ['filters', 'external_web_access']],
] as const)('of %s clients at a %s provider: %j is warned of, and a strict client is refused', async (face, model, terms, names) => {
  const search = face === 'messages' ? { type: 'web_search_20250305', name: 'web_search' } : { type: 'web_search' };
  const given = { model, content: 'hi', stream: false, more: { tools: [{ ...search, ...terms }] } };
  upstream.script(always(ok()));
  const { status, headers } = await askFace(server, face, given);
  expect(status).toBe(200);
  for (const name of names) expect(headers.get('x-dragoman-warnings')).toContain(`tools.web_search.${name}: `);
  const refused = await askFace(server, face, { ...given, headers: { 'x-dragoman-strict': 'true' } });
  expect([refused.status, refused.raw]).toEqual([400, expect.stringContaining(`tools.web_search.${names[0]}`)]);
});

test.each([
  ['gencompat', { tools: [{ googleSearch: { excludeDomains: 'a.example' } }] }, 'excludeDomains'],
  ['chat', { web_search_options: { user_location: { type: 'approximate', approximate: { city: ['London'] } } } }, 'user_location'],
] as const)('of %s clients: %j is warned of', async (face, more, name) => {
  upstream.script(always(ok()));
  const { headers } = await askFace(server, face, { model: 'messages', content: 'hi', stream: false, more });
  expect(headers.get('x-dragoman-warnings')).toContain(`tools.web_search.${name}: `);
});

test('a place that is null is none', async () => {
  upstream.script(always(ok()));
  const more = { tools: [{ type: 'web_search', user_location: null }] };
  expect(
    (await askFace(server, 'responses', { model: 'messages', content: 'hi', stream: false, more })).headers.get('x-dragoman-warnings') ?? '',
  ).not.toContain('user_location');
});
