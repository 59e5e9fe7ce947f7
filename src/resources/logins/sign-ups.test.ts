import { expect, onTestFinished, test } from 'vitest';
import type { Fault } from '#core/fault';
import { systemClock, type Clock } from '#kit/async/clock';
import { networkOf } from '#kit/net/client-network';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openLogins } from './logins.ts';

const migrations = ['users', 'logins'].map((noun) => new URL(`../${noun}/`, import.meta.url));

onBothDatabases('sign-ups', ({ open }) => {
  test('are at most 50 in an hour from a network, in this process and in others', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const process = (clock: Clock = systemClock) => {
      const logins = openLogins({ store, clock, months: () => 13, log: (problem, cause) => expect.fail(`${problem} ${String(cause)}`) });
      onTestFinished(() => logins.close());
      return logins;
    };
    let made = 0;
    const signUp = (logins: ReturnType<typeof process>, address: string) =>
      logins
        .letSignUp({ account: `person-${++made}@example.org`, address }, async () => ({ userId: made, owner: made }))
        .then(
          () => 'made',
          (error: Fault) => error.code,
        );
    const one = process();
    const outcomes = await Promise.all(Array.from({ length: 60 }, (_, at) => signUp(one, `2001:db8:0:7::${at.toString(16)}`)));
    expect(outcomes.filter((outcome) => outcome === 'made')).toHaveLength(50);
    expect(outcomes.filter((outcome) => outcome === 'rate-limited')).toHaveLength(10);
    await one.close(); // what it has noted is written
    const other = process();
    expect(await signUp(other, '2001:db8:0:7:ffff::1')).toBe('rate-limited');
    expect([await signUp(other, '2001:db8:0:8::1'), await signUp(other, '192.0.2.1')]).toEqual(['made', 'made']);
  });

  test('that fail count as well, and are no failed sign-ins of the account', async () => {
    const store = await open({ migrations });
    const logins = openLogins({ store, clock: systemClock, months: () => 13, log: () => {} });
    onTestFinished(() => logins.close());
    const visitor = { account: 'ada@example.org', address: '192.0.2.1' };
    for (let n = 0; n < 12; n++)
      await expect(logins.letSignUp(visitor, async () => ({ userId: 1, owner: undefined, why: 'the address is in use' }))).rejects.toMatchObject({
        code: 'conflict',
      });
    expect(await logins.list(1, 100)).toHaveLength(12);
    expect(await logins.letIn({ ...visitor, by: 'password' }, async () => ({ userId: 1, owner: 'ada' }))).toBe('ada');
  });
});

onBothDatabases('failed sign-ins', ({ open }) => {
  test('of an account are at most ten in a minute from a network, in this process and in others', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const process = () => {
      const logins = openLogins({ store, clock: systemClock, months: () => 13, log: (problem, cause) => expect.fail(`${problem} ${String(cause)}`) });
      onTestFinished(() => logins.close());
      return logins;
    };
    const ask = (logins: ReturnType<typeof process>, address: string, owner?: string) =>
      logins.letIn({ account: 'ada@example.org', address, by: 'password' }, async () => ({ userId: 1, owner })).catch((error: Fault) => error.code);
    const one = process();
    for (let n = 0; n < 10; n++) expect(await ask(one, `2001:db8:0:7::${n.toString(16)}`)).toBe('unauthenticated');
    await one.close(); // what it has noted is written
    const other = process();
    expect(await ask(other, '2001:db8:0:7:ffff::1', 'ada')).toBe('rate-limited');
    expect([await ask(other, '2001:db8:0:8::1', 'ada'), await ask(other, '192.0.2.1', 'ada')]).toEqual(['ada', 'ada']);
  });

  test('of all accounts together are at most a hundred in a minute from a network, in this process and in others', { timeout: 60_000 }, async () => {
    const store = await open({ migrations });
    const process = () => {
      const logins = openLogins({ store, clock: systemClock, months: () => 13, log: (problem, cause) => expect.fail(`${problem} ${String(cause)}`) });
      onTestFinished(() => logins.close());
      return logins;
    };
    const ask = (logins: ReturnType<typeof process>, account: string, address: string, owner?: string) =>
      logins
        .letIn({ account, address, by: 'password' }, async () => ({ userId: null, owner }))
        .catch(({ code, details }: Fault) => ({ code, seconds: details.retryAfter }));
    const one = process();
    for (let n = 0; n < 99; n++) expect(await ask(one, `person-${n}@example.org`, '192.0.2.1')).toMatchObject({ code: 'unauthenticated' });
    expect(await ask(one, 'ada@example.org', '192.0.2.1', 'ada')).toBe('ada'); // others of the same company have mistyped
    expect(await ask(one, 'bob@example.org', '192.0.2.1')).toMatchObject({ code: 'unauthenticated' });
    const refused = { code: 'rate-limited', seconds: expect.toSatisfy((seconds: number) => seconds > 1 && seconds <= 60) as number };
    expect(await ask(one, 'ada@example.org', '192.0.2.1', 'ada')).toEqual(refused);
    await one.close(); // what it has noted is written
    const other = process();
    expect(await ask(other, 'ada@example.org', '192.0.2.1', 'ada')).toEqual(refused);
    expect([await ask(other, 'ada@example.org', '192.0.2.2', 'ada'), await ask(other, 'ada@example.org', '2001:db8::1', 'ada')]).toEqual(['ada', 'ada']);
  });

  test('of very many accounts at once tell of no more than a hundred what was found', { timeout: 60_000 }, async () => {
    const store = await open({ migrations });
    const logins = openLogins({ store, clock: systemClock, months: () => 13, log: () => {} });
    onTestFinished(() => logins.close());
    const found = await Promise.all(
      Array.from({ length: 300 }, (_, at) =>
        logins
          .letIn({ account: `person-${at}@example.org`, address: '192.0.2.1', by: 'password' }, async () => ({
            userId: null,
            owner: at === 299 ? 'ada' : undefined,
          }))
          .catch((error: Fault) => error.code),
      ),
    );
    expect(found.filter((one) => one === 'unauthenticated')).toHaveLength(100);
    expect(found.filter((one) => one === 'rate-limited')).toHaveLength(200);
  });
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['', ''],
])('the network of %s is %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
