import type { Entry } from './entry.ts';

interface Group {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  /** Addresses by their beginning; the first group that has one gets it. */
  readonly of: RegExp;
}

/** What addresses are for, in the order of the page. */
const groups: readonly Group[] = [
  {
    id: 'chat',
    title: 'Chat completions',
    about: 'For OpenAI SDKs: the base address is `/v1`, also `/server/chatcompat/v1`.',
    of: /^\/server\/chatcompat\/v1\/(chat|completions)/,
  },
  {
    id: 'responses',
    title: 'Responses and conversations',
    about: 'Answers that are kept, continued and made in the background.',
    of: /^\/server\/chatcompat\/v1\/(responses|conversations)/,
  },
  { id: 'embeddings', title: 'Embeddings', about: 'Vectors of texts.', of: /^\/server\/chatcompat\/v1\/embeddings/ },
  {
    id: 'media',
    title: 'Audio, images, moderation',
    about: 'Passed to a provider of the same interface.',
    of: /^\/server\/chatcompat\/v1\/(audio|images|moderations)/,
  },
  { id: 'models', title: 'Models', about: 'What may be asked, and what it can do.', of: /^\/server\/chatcompat\// },
  { id: 'messages', title: 'Messages', about: 'For Anthropic SDKs: the base address is that of the server.', of: /^\/server\/messages\// },
  {
    id: 'content',
    title: 'Content generation',
    about: 'For Google SDKs: the base address is that of the server, or `/server/gencompat`.',
    of: /^\/server\/gencompat\//,
  },
  {
    id: 'account',
    title: 'Tokens and keys',
    about: 'The native interface: who you are, and what you hold.',
    of: /^\/(user\/|server\/session|\.well-known)/,
  },
  { id: 'people', title: 'Administration: people', about: 'Users, their keys, teams and plans.', of: /^\/server\/admin\/(users|teams|plans)/ },
  {
    id: 'books',
    title: 'Administration: usage and logs',
    about: 'What was asked, what it cost, and who changed what.',
    of: /^\/server\/admin\/(usage|logs|audit|votes)/,
  },
  { id: 'running', title: 'Administration: running the server', about: 'Providers, regions, machines and checks.', of: /^\/server\/admin\// },
  { id: 'mine', title: 'Your account', about: 'Plain REST over what is yours, and what is shared with you.', of: /^\/server\/mine/ },
  {
    id: 'mcp',
    title: 'Model Context Protocol',
    about: 'For MCP clients: datasets, plugins, personas and the tools of your MCP servers.',
    of: /^\/server\/mcp(\/|$)/,
  },
  { id: 'native', title: 'Native interface', about: 'Queries, datasets, agents and plugins, each answer in its envelope.', of: /^\/server\// },
  { id: 'watching', title: 'Health and metrics', about: 'For monitoring, and for people.', of: /^\// },
];

export interface FilledGroup extends Group {
  readonly entries: readonly Entry[];
}

export function groupsOf(entries: readonly Entry[]): readonly FilledGroup[] {
  const filled = Map.groupBy(entries, ({ path }) => groups.find(({ of }) => of.test(path)));
  return groups.flatMap((group) => (filled.has(group) ? [{ ...group, entries: filled.get(group)! }] : []));
}
