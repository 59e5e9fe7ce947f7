import { expect, test } from 'vitest';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openSignUp } from './sign-up.ts';
import { openUsers } from './store.ts';

const migrations = ['users', 'api-keys', 'teams', 'sessions'].map((noun) => new URL(`../${noun}/`, import.meta.url));
const wanted = { email: 'eve@example.org', password: 'correct horse' };
const by = { keyId: 0, requestId: null, address: '192.0.2.1' };

onBothDatabases('signing up', ({ open }) => {
  test('makes nobody a user of a server that has no administrator yet, whose address it might be', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const { make } = openSignUp({
      store,
      audit: async () => {},
      passwords: { sealed: async () => 'sealed' },
      plan: () => 'unlimited',
      domains: () => [],
      begin: async () => 'session',
    });
    await expect(make(wanted, by)).rejects.toMatchObject({ code: 'overloaded' });
    expect(await openUsers(store).hasAdministrator()).toBe(false);
    expect(await openUsers(store).list({ text: '', after: 0, limit: 1 })).toEqual([]);
    await openUsers(store).add({ email: 'admin@localhost', role: 'admin', plan: 'unlimited' });
    expect(await make(wanted, by)).toMatchObject({ owner: 'session' });
  });
});
