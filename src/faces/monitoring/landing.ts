import { escaped, page } from '../html.ts';

/** What the page at `/` shows. */
export interface Landing {
  readonly version: string;
  /** `https://ai.example`: the address under which the client knows this server. */
  readonly server: string;
  /** Is there a provider besides the built-in models? Its name is nothing for the public. */
  readonly hasProvider: boolean;
  /** Is the native interface there? */
  readonly hasNative: boolean;
}

interface Interface {
  readonly name: string;
  readonly who: string;
  readonly about?: string;
  readonly base: string;
  readonly snippet: string;
}

function interfacesAt({ server, hasNative }: Landing): readonly Interface[] {
  const native = {
    name: 'native',
    who: 'Programs for the native interface of Dragoman',
    about: 'Questions about datasets, agents, plugins, speech and administration, beyond what the other interfaces have. MCP clients connect to /server/mcp.',
    base: server,
    snippet: `curl ${server}/server/get-models -X POST -H "x-access-tokens: $DRAGOMAN_KEY"`,
  };
  return [
    {
      name: 'openai',
      who: 'OpenAI SDKs and other OpenAI-compatible clients',
      base: `${server}/v1`,
      snippet: `export OPENAI_BASE_URL=${server}/v1\nexport OPENAI_API_KEY="$DRAGOMAN_KEY"`,
    },
    {
      name: 'anthropic',
      who: 'Anthropic SDKs, Claude Code',
      base: server,
      snippet: `export ANTHROPIC_BASE_URL=${server}\nexport ANTHROPIC_AUTH_TOKEN="$DRAGOMAN_KEY"`,
    },
    {
      name: 'google',
      who: 'Google GenAI SDKs, Gemini CLI',
      base: server,
      snippet: `export GOOGLE_GEMINI_BASE_URL=${server}\nexport GEMINI_API_KEY="$DRAGOMAN_KEY"`,
    },
    ...(hasNative ? [native] : []),
  ];
}

const links = { docs: '/docs', openapi: '/openapi.json', health: '/healthz', ready: '/readyz' } as const;

/** For programs that ask for JSON. */
export function description(landing: Landing) {
  return {
    name: 'Dragoman',
    version: landing.version,
    interfaces: interfacesAt(landing).map(({ name, base }) => ({ name, base })),
    providerConfigured: landing.hasProvider,
    links,
  };
}

/** For people. */
export function landingPage(landing: Landing): string {
  const { version, server, hasProvider } = landing;
  const curl = `curl ${server}/v1/chat/completions \\\n  -H "Authorization: Bearer $DRAGOMAN_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{"model": "built-in", "messages": [{"role": "user", "content": "Say exactly: it works"}]}'`;
  const provider = hasProvider
    ? '<p class="state ok">A model provider is configured. <code>GET /v1/models</code> lists the models that your key may use.</p>'
    : `<p class="state">No model provider is configured yet: only the built-in models answer. Start the server with <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or <code>GEMINI_API_KEY</code> in its environment, or list <code>providers:</code> in <code>dragoman.yaml</code>.</p>`;
  const sections = interfacesAt(landing).map(
    ({ who, about, base, snippet }) => `<section class="card"><h3>${escaped(who)}</h3>
${about === undefined ? '' : `<p>${escaped(about)}</p>\n`}<p>Base address <code class="pick">${escaped(base)}</code></p>
<pre class="pick"><code>${escaped(snippet)}</code></pre></section>`,
  );
  return page(
    'Dragoman',
    `<header>
<h1>Dragoman <small>${escaped(version)}</small></h1>
<p>This is an AI gateway, and it is running. Programs talk to it through the API that they already know; it passes their requests on to model providers, and keeps account of usage.</p>
${provider}
<nav class="links"><a href="${links.docs}">API reference</a> <a href="${links.openapi}">OpenAPI document</a> <a href="${links.health}">Health</a> <a href="${links.ready}">Readiness</a></nav>
</header>
<main>
<h2>Try it</h2>
<p>The first start printed an API key. Put it in a variable, then ask:</p>
<pre class="pick"><code>export DRAGOMAN_KEY=your-key</code></pre>
<pre class="pick"><code>${escaped(curl)}</code></pre>
<h2>Point your program here</h2>
<p>Set these where your program runs, not where the server starts: the server would take them for the address and key of a provider.</p>
${sections.join('\n')}
</main>`,
  );
}
