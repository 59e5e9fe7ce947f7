import { program } from '#config/program';
import { anyOtherName } from '#core/known-models';
import { reachableHere } from '#http/own-address';
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
export function greeting({ version, url: listening, data, first, models, hasProvider }: GreetingDeps): string {
  const url = reachableHere(listening);
  const own = models.filter((name) => name !== anyOtherName);
  const rest = [...(own.length > shownModels ? [`${own.length - shownModels} more`] : []), ...(own.length < models.length ? [anyOtherName] : [])];
  const named = [own.slice(0, shownModels).join(', '), ...rest].join(' and ');
  return `
  Dragoman ${version} is listening. Base URLs for your SDK:

  OpenAI           ${url}/v1
  Anthropic        ${url}
  Gemini           ${url}
${url === listening ? '' : everywhere}
  API reference    ${url}/docs
  Data folder      ${data}
  Models           ${named}${hasProvider ? '' : noProvider}
${first ? firstStart(url, first, models) : lostKey}`;
}

const everywhere = `
  All interfaces   It listens on every address of this machine, over plain HTTP: put a proxy with TLS in front.
`;

const noProvider = `
                   No provider is configured yet: set OPENAI_API_KEY, or run ${program} init.`;

const lostKey = `
  Lost your key? ${program} user list shows the users, and ${program} key create --email ADDRESS --name NAME makes a new key.
`;

/** A key of the operator's own is not shown: what is printed may be kept in a journal. */
function firstStart(url: string, { email, key, isGiven }: FirstUser, models: readonly string[]): string {
  const model = models.includes('built-in') ? 'built-in' : (models[0] ?? 'MODEL');
  const authorization = isGiven ? '"Authorization: Bearer $DRAGOMAN_ADMIN_API_KEY"' : `'Authorization: Bearer ${key}'`;
  return `
  ${isGiven ? 'Your first user.' : 'Your first user and API key. Save the key: it is not shown again.'}

  User             ${email}
  API key          ${isGiven ? 'the one in DRAGOMAN_ADMIN_API_KEY' : key}

  Try it in a second terminal:

  curl ${url}/v1/chat/completions \\
    -H ${authorization} -H 'Content-Type: application/json' \\
    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Say exactly: it works"}]}'
`;
}
