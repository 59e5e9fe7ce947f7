import type { Content, Entry, Operation, Parameter } from './entry.ts';
import { fieldsHtml, type Schema } from './fields.ts';
import { groupsOf } from './groups.ts';
import { escaped, page, prose } from '../html.ts';

export interface Document {
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: object;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

/** The OpenAPI document as a page that needs no script. */
export function docsPage(document: Document): string {
  const entries = entriesOf(document.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>);
  const groups = groupsOf(entries);
  const schemas = Object.entries((document.components?.schemas ?? {}) as Readonly<Record<string, Schema>>);
  const contents = groups.map(
    ({ id, title, entries: own }) =>
      `<li><a href="#${id}">${escaped(title)}</a><ul>${own.map(({ method, path, operation }) => `<li><a href="#${operation.operationId}"><b>${method.toUpperCase()}</b> ${breakable(short(path))}</a></li>`).join('')}</ul></li>`,
  );
  const sections = groups.map(
    ({ id, title, about, entries: own }) =>
      `<section><h2 id="${id}">${escaped(title)}</h2>\n<p>${prose(about)}</p>\n${own.map(entryHtml).join('\n')}\n</section>`,
  );
  const url = document.servers[0]?.url ?? '/';
  const server = url === '/' ? 'this server' : `<code>${escaped(url)}</code>`;
  return page(
    `${document.info.title}: API reference`,
    `<a class="skip" href="#entries">Skip the contents</a>
<header>
<h1><a href="/">${escaped(document.info.title)}</a> <small>${escaped(document.info.version)}</small></h1>
<p>Every address of ${server}, generated from the schemas that validate requests. As data: <a href="/openapi.json">openapi.json</a>.</p>
</header>
<div class="columns">
<nav class="contents" aria-label="Contents"><ul><li><a href="#keys">Keys</a></li>${contents.join('')}<li><a href="#errors">Errors</a></li><li><a href="#schemas">Schemas</a></li></ul></nav>
<main id="entries" tabindex="-1">
<section><h2 id="keys">Keys</h2>
<p>Send your API key in one of these headers: <code>Authorization: Bearer KEY</code>, <code>x-access-tokens: KEY</code>, <code>x-api-key: KEY</code> or <code>x-goog-api-key: KEY</code>. A key may be narrowed to scopes; each entry names the one that it needs. In a browser, the cookie of <code>POST /server/session</code> takes the place of a key.</p></section>
${sections.join('\n')}
${errorsHtml(entries)}
<section><h2 id="schemas">Schemas</h2>
${schemas.map(([name, schema]) => `<section class="schema" id="schema-${escaped(name)}"><h3><code>${escaped(name)}</code></h3>${fieldsHtml(schema)}</section>`).join('\n')}
</section>
</main>
</div>`,
  );
}

/** One entry for each operation: its aliases are named in it. */
function entriesOf(paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>): readonly Entry[] {
  const all = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  const aliases = Map.groupBy(all, ({ operation }) => operation['x-alias-of'] ?? '');
  return (aliases.get('') ?? []).map(({ path, method, operation }) => ({
    path,
    method,
    operation,
    also: (aliases.get(operation.operationId) ?? []).map((alias) => `${alias.method === method ? '' : `${alias.method.toUpperCase()} `}${alias.path}`),
  }));
}

/** A path that may break before a slash, a colon or a capital, and nowhere else while it fits. */
const breakable = (path: string): string => escaped(path).replaceAll(/(?=[/:])|(?<=[a-z])(?=[A-Z])/g, '<wbr>');

const short = (path: string): string => path.replace(/^\/server\/(chatcompat\/v1|messages\/v1|gencompat\/v1beta|admin|mine)(?=\/)/, '');

function entryHtml({ method, path, also, operation }: Entry): string {
  const { operationId, summary, parameters = [], requestBody, responses } = operation;
  const scope = operation['x-scope'];
  const asked = requestBody && Object.values(requestBody.content)[0];
  const types = Object.keys(requestBody?.content ?? {});
  const [status = '200', done] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? [];
  const answered = done?.content && Object.values(done.content)[0];
  const errors = Object.keys(responses).filter((code) => /^[45]/.test(code));
  const parts = [
    also.length > 0 ? `<p class="also">Also ${also.map((one) => `<code>${breakable(one)}</code>`).join(', ')}</p>` : '',
    `<p class="scope">${scope === undefined ? 'No key needed.' : `Needs ${needs(scope)}.`}</p>`,
    ...(['path', 'query', 'header'] as const).map((where) => parametersHtml(where, parameters)),
    asked
      ? `<h3>Request</h3>${types.some((type) => type !== 'application/json') ? `<p>As ${types.map((type) => `<code>${escaped(type)}</code>`).join(', ')}.</p>` : ''}${fieldsHtml(asked.schema)}${exampleHtml(asked)}`
      : '',
    answered ? `<h3>Answer <code>${status}</code></h3>${fieldsHtml(answered.schema)}${exampleHtml(answered)}` : '',
    errors.length > 0 ? `<h3>Errors</h3><p>${errors.map((code) => `<a href="#error-${code}">${code}</a>`).join(' ')}</p>` : '',
  ];
  return `<details id="${escaped(operationId)}"><summary><b class="${method}">${method.toUpperCase()}</b> <code>${breakable(path)}</code> <span>${prose(summary)}</span></summary>
${parts.join('')}</details>`;
}

function needs(scope: string): string {
  if (scope === 'any') return 'any good key';
  return scope === 'unscoped' ? 'a key without scopes' : `a key with the scope <code>${escaped(scope)}</code>, or without scopes`;
}

const titles = { path: 'In the address', query: 'Query', header: 'Headers' } as const;

function parametersHtml(where: keyof typeof titles, all: readonly Parameter[]): string {
  const own = all.filter((one) => one.in === where);
  if (own.length === 0) return '';
  const properties = Object.fromEntries(own.map(({ name, schema, description }) => [name, description === undefined ? schema : { ...schema, description }]));
  return `<h3>${titles[where]}</h3>${fieldsHtml({ type: 'object', properties, required: own.filter(({ required }) => required).map(({ name }) => name) })}`;
}

const exampleHtml = ({ example }: Content): string => (example === undefined ? '' : `<pre><code>${escaped(JSON.stringify(example, null, 2))}</code></pre>`);

/** What each status means, and the shape of a refusal in each interface. */
function errorsHtml(entries: readonly Entry[]): string {
  const said = new Map<string, string>();
  const shapes = new Map<string, Schema>();
  for (const { operation } of entries)
    for (const [code, { description = '', content }] of Object.entries(operation.responses)) {
      if (/^[45]/.test(code)) said.set(code, description);
      const schema = content?.['application/json']?.schema;
      if (code === 'default' && schema) shapes.set(operation.tags[0] ?? '', schema);
    }
  const rows = Array.from(said)
    .toSorted(([one], [other]) => Number(one) - Number(other))
    .map(([code, text]) => `<li id="error-${code}"><code>${code}</code> ${prose(text)}</li>`);
  return `<section><h2 id="errors">Errors</h2>
<p>The status says what went wrong, and the message what to do. Every answer has an <code>x-request-id</code>.</p>
<ul class="fields">${rows.join('')}</ul>
${Array.from(shapes, ([name, schema]) => `<h3>${escaped(name)}</h3>${fieldsHtml(schema)}`).join('\n')}
</section>`;
}
