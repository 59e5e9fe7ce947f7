/* More requests than the process can answer, told by who is answered first and how, not by how long it takes. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { connectRaw } from '../support/fakes/raw.ts';
import { newMember } from '../support/members.ts';
import { chat, startTestServer } from '../support/server.ts';

const hello = { model: 'built-in', messages: [{ role: 'user', content: 'hello' }], max_tokens: 5 };
const each = 32; // that a connection may have unanswered
const server = await startTestServer();
afterAll(() => server.close());

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Connections over which requests are sent at once, as many as each may have unanswered. */
async function floodgate(key: string, count: number, path = chat) {
  const body = JSON.stringify(hello);
  const request = `POST ${path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const sockets = Array.from({ length: count / each }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
  const leave = () => sockets.forEach((socket) => socket.destroy());
  onTestFinished(leave);
  for (const socket of sockets) socket.write('GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n');
  await Promise.all(sockets.map((socket) => once(socket, 'data'))); // the server has accepted all of them
  const answers: Answer[] = [];
  const answered = (socket: Socket) =>
    new Promise<void>((resolve) => {
      let text = '';
      let seen = 0;
      socket.setEncoding('utf8').on('data', (more: string) => {
        text += more;
        for (;;) {
          const end = text.indexOf('\r\n\r\n');
          const length = Number(/^content-length: (\d+)/im.exec(text.slice(0, end))?.[1]);
          if (end < 0 || text.length < end + 4 + length) break;
          answers.push({ status: Number(text.slice(9, 12)), head: text.slice(0, end), body: text.slice(end + 4, end + 4 + length) });
          text = text.slice(end + 4 + length);
          if (++seen === each) resolve();
        }
      });
      socket.on('close', () => resolve());
      socket.write(request.repeat(each));
    });
  return {
    leave,
    open: () => ({ answers, done: Promise.all(sockets.map(answered)) }),
  };
}

test('a user with one request does not wait behind the thousands that another has sent before', async () => {
  const [one, other] = [await newMember(server), await newMember(server)];
  for (const member of [one, other]) expect((await member.ask(hello)).status).toBe(200);
  const flood = await floodgate(one.keys[0]!, 3200);
  const { answers, done } = flood.open();
  expect((await other.ask(hello)).status).toBe(200);
  expect(answers.length).toBeLessThan(1600);
  await done;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test('of more than the queue has places for, the rest is refused at once with 503 and Retry-After, and their connections stay; those who leave make room', async () => {
  const flood = await floodgate(server.key, 14_400);
  const { answers, done } = flood.open();
  const refused = () => answers.filter(({ status }) => status !== 200);
  await expect.poll(() => refused().length, { timeout: 60_000 }).toBeGreaterThan(2000);
  for (const { status, head, body } of refused()) {
    expect([status, JSON.parse(body)]).toMatchObject([503, { error: { type: 'server_error', code: 'overloaded' } }]);
    expect(head).toMatch(/^retry-after: [1-5]$/m);
    expect(head).not.toMatch(/^connection: close$/m);
  }
  expect(new Set(refused().map(({ head }) => /^retry-after: (.)$/m.exec(head)![1])).size).toBeGreaterThan(3);
  flood.leave();
  await done;
  expect((await server.ask(chat, hello)).status).toBe(200);
});

test('an unread small body is passed over: the connection is good for the next request, and is closed where the rest of the body does not come', async () => {
  const refused = `POST ${chat} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer wrong\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n`;
  const raw = await connectRaw(server.url);
  raw.send(refused);
  expect((await raw.answer()).status).toBe(401);
  raw.send('{"a": "b"}GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n');
  expect((await raw.answer()).status).toBe(200);
  raw.send(`${refused}{"a":`);
  expect((await raw.answer()).status).toBe(401);
  expect(await raw.ended()).toBe('fin');
});

test('requests that spend nothing wait for their turn, too', async () => {
  const [one, other] = [await newMember(server), await newMember(server)];
  for (const member of [one, other]) expect((await member.ask(hello)).status).toBe(200);
  const { answers, done } = (await floodgate(one.keys[0]!, 3200, '/server/messages/v1/messages/count_tokens')).open();
  expect((await other.ask(hello)).status).toBe(200);
  expect(answers.length).toBeLessThan(1600);
  await done;
});

test('many who connect at once, such as after a restart of theirs, do not wait behind the thousands that others have sent', async () => {
  const { answers, done } = (await floodgate(server.key, 9600)).open();
  const newcomers = Array.from({ length: 300 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
  onTestFinished(() => newcomers.forEach((socket) => socket.destroy()));
  for (const socket of newcomers) socket.write('GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n');
  const said = await Promise.all(newcomers.map((socket) => once(socket, 'data').then(String)));
  for (const text of said) expect(text).toMatch(/^HTTP\/1.1 200 /);
  expect(answers.length).toBeLessThan(2400); // one of them is accepted in each turn
  await done;
});
