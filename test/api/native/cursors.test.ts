/* Cursors that no list gave. */
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { person, visited } from './visitors.ts';

const uuid = '00000000-0000-4000-8000-000000000000';
const now = '2026-11-27T12:00:00.000Z';

onBothDatabases('cursors', ({ place }) => {
  test('that a list has not given are refused, or go on from where they say', { timeout: 120_000 }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    const agent = await ada.ask('POST', '/server/mine/agents', { name: 'a', mode: 'single', instructions: 'x' });
    expect(agent.status).toBe(201);
    const statusOf = async ([path, ...place]: readonly [string, ...(string | number)[]]) => {
      const ask = path.startsWith('/server/admin') ? all.admin : ada.ask;
      return (await ask('GET', `${path}?cursor=${Buffer.from(JSON.stringify(place)).toString('base64url')}`)).status;
    };
    const refused = [
      ['/server/mine/chats', 'chats', '9999-12-31T23:59:59-12:00', uuid],
      ['/server/mine/chats', 'chats', now, '-'.repeat(36)],
      ['/server/mine/logs', 'logs', '0000-01-01T00:00:00.000Z', 'req_a', 0],
      ['/server/admin/votes', 'votes', '+010000-01-01T00:00:00.000Z', 1],
    ] as const;
    const taken = [
      [`/server/mine/agents/${agent.body['id'] as number}/versions`, 'agent-versions', Number.MAX_SAFE_INTEGER],
      ['/server/mine/chats', 'chats', now, uuid],
      ['/server/mine/logs', 'logs', now, 'req_a', Number.MAX_SAFE_INTEGER],
      ['/server/admin/votes', 'votes', now, Number.MAX_SAFE_INTEGER],
    ] as const;
    expect(await Promise.all(refused.map(statusOf))).toEqual(refused.map(() => 400));
    expect(await Promise.all(taken.map(statusOf))).toEqual(taken.map(() => 200));
  });
});
