import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import type { TestServer } from '../../support/server.ts';

/** The official client, at `/server/mcp`. @param mode `legacy`: it speaks the revision of 2025, `auto`: the newest */
export async function mcpClient({ url }: Pick<TestServer, 'url'>, key: string, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL('/server/mcp', url), { requestInit: { headers: { authorization: `Bearer ${key}` } } }));
  onTestFinished(() => client.close());
  return client;
}

/** The text of what a tool answered. */
export function saidBy(result: { readonly content?: unknown }): string {
  const blocks = (result.content ?? []) as readonly { readonly text?: string }[];
  return blocks.map(({ text = '' }) => text).join('\n');
}
