/* Responses that the database cannot keep. */
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../../support/databases.ts';
import { administer } from '../../support/postgres.ts';
import { startTestServer } from '../../support/server.ts';

const address = inject('postgres');
const path = '/server/chatcompat/v1/responses';

describe.skipIf(!address)('a response that cannot be kept, as where the disk of PostgreSQL is full,', () => {
  test('is answered: it says store false, a warning says why, and later requests do not find it', async () => {
    const { folder, databaseUrl } = await onServer(address!).place();
    const server = await startTestServer({ folder, databaseUrl: databaseUrl! });
    onTestFinished(() => server.close());
    const create = async (more: object = {}) => {
      const answer = await server.ask(path, { model: 'built-in', input: 'Say exactly: hello', ...more });
      const text = await answer.text();
      return { status: answer.status, warnings: answer.headers.get('x-dragoman-warnings'), text };
    };
    expect(await create()).toMatchObject({ status: 200, warnings: null });
    await administer(
      databaseUrl!,
      `create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;
       create trigger full_disk before insert on stored_response for each row execute function full_disk()`,
    );
    const whole = await create();
    const { id, ...response } = JSON.parse(whole.text) as { id: string; store: boolean; status: string };
    expect([whole.status, whole.warnings, response]).toEqual([
      200,
      'store: the response could not be kept, so that later requests cannot name it',
      expect.objectContaining({ store: false, status: 'completed' }),
    ]);
    expect((await server.ask(`${path}/${id}`)).status).toBe(404);
    const stream = await create({ stream: true });
    expect([stream.status, /event: response.completed\ndata: (.*)/.exec(stream.text)![1]]).toEqual([200, expect.stringContaining('"store":false')]);
    expect((await create({ store: false })).warnings).toBeNull();
  });
});
