/* Lists of tools of MCP servers that are broken in part, dead or slow. */
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/mcp-servers';

interface Listed {
  readonly tool: { readonly name: string };
  readonly server: { readonly id: number; readonly name: string };
}
const namesIn = (body: Readonly<Record<string, unknown>>) => (body['response'] as Listed[]).map(({ tool, server }) => `${server.name}.${tool.name}`);

const deep = (levels: number) => `${'{"type":"object","properties":{"a":'.repeat(levels / 2)}{}${'}}'.repeat(levels / 2)}`;
const raw = (name: string, schema: string, more = '') => `{"name":"${name}","description":"Does.",${more}"inputSchema":${schema}}`;
const object = '{"type":"object"}';

test.each(['application/json', 'text/event-stream'])(
  'a tool whose schema cannot be read is left out of a list that came as %s, which its owner is told, and the others are there',
  { timeout: long },
  async (type) => {
    const mcp = await startScriptedMcp([]);
    const all = await visited(await anyPlace(), { yaml: `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const id = (await ada.ask('POST', root, { name: 's', url: mcp.url })).body['id'] as number;
    const list = async (tools: readonly string[]) => {
      mcp.script(({ method }, response, key) => {
        if (method !== 'tools/list') return { content: [{ type: 'text', text: 'done' }] };
        const text = `{"jsonrpc":"2.0","id":${String(key)},"result":{\n"tools":[${tools.join(' , ')}],"ttlMs":0}}`;
        response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? text : `data: ${text.replace('\n', '')}\n\n`);
        return undefined;
      });
      const found = namesIn((await ada.ask('GET', '/server/list-mcp-tools?refresh=true')).body);
      return [found, (await ada.ask('GET', `${root}/${id}`)).body['lastError']];
    };
    const left = (names: string) => expect.stringContaining(`left out: ${names}. `) as string;
    const one = raw('one', object);
    expect(await list([one])).toEqual([['s.one'], null]);
    expect(await list([raw('deep', deep(80)), one, raw('deeper', deep(5000))])).toEqual([['s.one'], left('deep, deeper')]);
    expect((await ada.ask('POST', `${root}/${id}/test`, { tool: 'one' })).body).toMatchObject({ state: 'ok', result: { text: 'done' } });
    expect(await list([raw('twice', '{"type":"object","type":"object"}'), one])).toEqual([['s.one'], left('twice')]);
    expect(await list([raw('wide', `{"type":"object","enum":[${'0,'.repeat(260_000)}0]}`), one])).toEqual([['s.one'], left('wide')]);
    expect(await list([raw('range', '{"type":"object","maximum":1e999}'), one])).toEqual([['s.one'], left('range')]);
    expect(await list([raw('no schema', '5'), '{}', '[]', '"]}"', one, one])).toEqual([['s.one'], left('one, 4 more')]);
    const strange = raw('strange', object, `"outputSchema":${deep(80)},"_meta":{"a":"\\"]}","a":[{}]},`); // what is not read does no harm
    expect(await list([strange, one])).toEqual([['s.strange', 's.one'], null]);
    expect(await list([one, ...Array.from({ length: 200 }, (_, at) => JSON.stringify(toolNamed(`t${at}`)))])).toMatchObject([
      { length: 128 },
      expect.stringContaining('more than 128 tools') as string,
    ]);
    expect(await list([one])).toEqual([['s.one'], null]);
  },
);
