interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
}

interface Operation {
  readonly summary: string;
  readonly tags: readonly string[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean; readonly schema: Schema }[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>>;
  readonly 'x-scope'?: string;
}

/** The OpenAPI document as a page that needs no script. */
export function docsPage(document: {
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: object;
}): string {
  const operations = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? '');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(document.info.title)} – the interfaces</title>
<link rel="stylesheet" href="/docs.css">
</head>
<body>
<header>
<h1>${escaped(document.info.title)} <small>${escaped(document.info.version)}</small></h1>
<p>Every address of this server, from the same values that check its requests. As data: <a href="/openapi.json">openapi.json</a>.</p>
<p>Send your key as <code>Authorization: Bearer KEY</code> or <code>x-access-tokens: KEY</code> to <code>${escaped(document.servers[0]?.url ?? '')}</code>.</p>
</header>
<main>
${Array.from(groups, ([name, group]) => `<section><h2>${escaped(name)}</h2>\n${group.map(operationText).join('\n')}\n</section>`).join('\n')}
</main>
</body>
</html>
`;
}

function operationText({ path, method, operation }: { path: string; method: string; operation: Operation }): string {
  const input = operation.requestBody?.content['application/json']?.schema;
  const output = (operation.responses['200'] ?? operation.responses['201'])?.content?.['application/json']?.schema;
  const query = (operation.parameters ?? []).filter((one) => one.in === 'query');
  const asked = query.length > 0 ? fieldsText({ properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])) }) : '';
  const scope = operation['x-scope'] ? `<p class="scope">Scope: <code>${escaped(operation['x-scope'])}</code></p>` : '<p class="scope">No key needed.</p>';
  return `<details><summary><b class="${method}">${method.toUpperCase()}</b> <code>${escaped(path)}</code> <span>${prose(operation.summary)}</span></summary>
${scope}${asked ? `<h3>Query</h3>${asked}` : ''}${input ? `<h3>Request</h3>${fieldsText(input)}` : ''}${output ? `<h3>Answer</h3>${fieldsText(output)}` : ''}</details>`;
}

const deepest = 4;

function fieldsText(schema: Schema, depth = 0): string {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return '';
  const rows = fields.map(([name, field]) => {
    const inner = [field, ...(field.anyOf ?? [])].flatMap((one) => [one, ...(one.items ? [one.items, ...(one.items.anyOf ?? [])] : [])]);
    const nested = depth < deepest ? inner.map((one) => fieldsText(one, depth + 1)).join('') : '';
    const required = schema.required?.includes(name) ? ' <em>required</em>' : '';
    return `<li><code>${escaped(name)}</code> <i>${escaped(typeText(field))}</i>${required} ${prose(field.description ?? '')}${nested}</li>`;
  });
  return `<ul>${rows.join('')}</ul>`;
}

function typeText(schema: Schema): string {
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeText))].join(' | ');
  const range = schema.minimum === undefined && schema.maximum === undefined ? '' : ` ${schema.minimum ?? ''}…${schema.maximum ?? ''}`;
  const type = schema.type === 'array' ? `array of ${schema.items ? typeText(schema.items) : 'anything'}` : (schema.type ?? 'anything');
  return `${type}${range}${schema.default === undefined ? '' : `, default ${JSON.stringify(schema.default)}`}`;
}

/** What stands between backticks is code. */
const prose = (text: string): string => escaped(text).replaceAll(/`([^`]{1,500})`/g, '<code>$1</code>');

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

export const docsStyle = `
:root { color-scheme: light dark; --line: light-dark(#dde1e6, #343a42); --soft: light-dark(#f4f6f8, #1c2026); --accent: light-dark(#8a3b12, #f0a878); --quiet: light-dark(#5a6572, #9aa5b1); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 60rem; font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fff, #14171b); color: light-dark(#1a1f25, #e6eaee); }
h1 small { font-size: .5em; color: var(--quiet); font-weight: normal; }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: .75rem 0 .25rem; }
a { color: var(--accent); }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: 0 .75rem; }
details[open] { padding-bottom: .75rem; }
summary { cursor: pointer; padding: .6rem 0; display: grid; grid-template-columns: 4rem 1fr; gap: 0 .5rem; align-items: baseline; }
summary::-webkit-details-marker { display: none; }
summary b { color: var(--accent); font-size: .85em; }
summary span { grid-column: 2; color: var(--quiet); }
ul { margin: .25rem 0; padding-left: 1.25rem; border-left: 2px solid var(--soft); list-style: none; }
li { margin: .2rem 0; }
i { color: var(--quiet); font-style: normal; font-size: .9em; overflow-wrap: anywhere; }
em { color: var(--accent); font-style: normal; font-size: .8em; }
.scope { color: var(--quiet); margin: 0; }
@media (max-width: 40rem) { body { padding: 1rem; } }
`;
