import type { FirstUser } from '#app/first-user';

export interface GreetingDeps {
  readonly version: string;
  readonly url: string;
  readonly data: string;
  /** The first user, on the first start only. */
  readonly first: FirstUser | undefined;
  readonly models: readonly string[];
  readonly hasProvider: boolean;
}

/** How many models are listed by name. */
const shownModels = 8;

/** The text printed when the server has started. It has an API key on the first start only. */
export function greeting({ version, url, data, first, models, hasProvider }: GreetingDeps): string {
  const named = models.slice(0, shownModels).join(', ') + (models.length > shownModels ? ` and ${models.length - shownModels} more` : '');
  return `
  Dragoman ${version} is listening. Base URLs for your SDK:

  OpenAI           ${url}/server/chatcompat/v1
  Anthropic        ${url}/server/messages
  Gemini           ${url}/server/gencompat

  API reference    ${url}/docs
  Data folder      ${data}
  Models           ${named}${hasProvider ? '' : '\n                   No provider is configured yet: set OPENAI_API_KEY, or run npx dragoman init.'}
${first ? firstStart(url, first) : ''}`;
}

function firstStart(url: string, { email, key }: FirstUser): string {
  return `
  Your first user and API key. Save the key: it is not shown again.

  User             ${email}
  API key          ${key}

  Try it in a second terminal:

  curl ${url}/server/chatcompat/v1/chat/completions \\
    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"model": "built-in", "messages": [{"role": "user", "content": "Say exactly: it works"}]}'
`;
}
