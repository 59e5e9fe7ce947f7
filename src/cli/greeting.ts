import type { FirstUser } from '#app/first-user';

export interface Greeting {
  readonly version: string;
  readonly url: string;
  readonly data: string;
  /** Absent after the first start. */
  readonly first: FirstUser | undefined;
  readonly models: readonly string[];
  readonly hasProvider: boolean;
}

const shownModels = 8;

/** What a person reads when the server has started. A key is in it once, at the first start. */
export function greeting({ version, url, data, first, models, hasProvider }: Greeting): string {
  const named = models.slice(0, shownModels).join(', ') + (models.length > shownModels ? ` and ${models.length - shownModels} more` : '');
  return `
  Dragoman ${version} is listening.

  OpenAI-style     ${url}/server/chatcompat/v1
  Anthropic-style  ${url}/server/messages
  Gemini-style     ${url}/server/gencompat
  All addresses    ${url}/docs
  Data             ${data}
  Models           ${named}${hasProvider ? '' : '\n                   (no provider is configured yet: set OPENAI_API_KEY, or run: npx dragoman init)'}
${first ? firstStart(url, first) : ''}`;
}

function firstStart(url: string, { email, key }: FirstUser): string {
  return `
  Your first user and key. The key is shown this once: keep it.

  User             ${email}
  API key          ${key}

  Try it:

  curl ${url}/server/chatcompat/v1/chat/completions \\
    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"model": "built-in", "messages": [{"role": "user", "content": "Say exactly: it works"}]}'
`;
}
