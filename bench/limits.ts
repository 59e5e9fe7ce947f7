/** What credentials and limits cost a chat: an access token beside a key, and limits of key, team and day beside none, in turns in one warm process. */
import { chatBody } from './bodies.ts';
import type { Contestant } from './contestants/index.ts';
import { atMost, type Question, type Row } from './question.ts';
import type { Rig } from './rig.ts';
import { median, ratio, spentBy, warmUp } from './rounds.ts';

/** No call comes near any of them. */
const much = 1e12;
const usualWarmUp = 30_000;

export const limits: Question = {
  name: 'limits',
  ask: (rig) =>
    rig.withContestants(rig.present(['dragoman']), {}, async ([dragoman]) => {
      if (!dragoman) return [];
      const load = { body: chatBody({ bytes: 1000 }), clients: 32 };
      const turns = await turnsOf(dragoman);
      for (const turn of turns) await warmUp(rig, turn, load, (rig.options.warmUp ?? usualWarmUp) / turns.length);
      return rowsOf(rig, turns, load);
    }),
};

interface Turn extends Contestant {
  readonly what: string;
  readonly bar?: { readonly than: string; readonly says: string; readonly times: number };
}

async function rowsOf(rig: Rig, turns: readonly Turn[], load: { readonly body: string; readonly clients: number }): Promise<Row[]> {
  const { rounds, seconds } = rig.options;
  const found = new Map<string, number[]>(turns.map(({ what }) => [what, []]));
  for (let round = 0; round < rounds; round++)
    for (const at of turns.keys()) {
      const turn = turns[(at + round) % turns.length]!;
      found.get(turn.what)!.push(await spentBy(rig, turn, load, seconds));
    }
  return turns.map(({ what, bar, name }): Row => {
    const cpu = found.get(what)!;
    const times = bar && ratio(cpu, found.get(bar.than));
    const note = `${Math.round(Math.min(...cpu))} to ${Math.round(Math.max(...cpu))}${bar ? `; ${times!.toFixed(3)} × ${bar.than}` : ''}`;
    return { what: `chat 1 KB with ${what}, CPU µs`, who: name, value: median(cpu), note, ...(bar && { bars: [atMost(bar.says, times, bar.times)] }) };
  });
}

/** The same process, asked by users with different credentials and limits. */
async function turnsOf(dragoman: Contestant): Promise<readonly Turn[]> {
  const [name, value] = dragoman.headers[0]!.split(': ') as [string, string];
  const administer = async <Answer>(method: string, path: string, body: object): Promise<Answer> => {
    const init = { method, body: JSON.stringify(body), headers: { [name]: value, 'content-type': 'application/json' } };
    const answer = await fetch(`http://127.0.0.1:${dragoman.port}${path}`, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Answer;
  };
  /** @returns the key of a new user */
  const user = async (email: string, ofUser: object, ofKey: object, ofTeam?: object) => {
    const { id } = await administer<{ id: number }>('POST', '/server/admin/users', { email, plan: 'unlimited' });
    await administer('PATCH', `/server/admin/users/${id}`, ofUser);
    if (ofTeam) await administer('POST', '/server/admin/teams', { name: email, plan: 'unlimited', members: [id], ...ofTeam });
    return (await administer<{ key: string }>('POST', `/server/admin/users/${id}/keys`, { name: 'bench', ...ofKey })).key;
  };
  const bearer = (credential: string) => ({ ...dragoman, headers: [`Authorization: Bearer ${credential}`] });

  const email = 'plain@example.org';
  const key = await user(email, {}, {});
  const { response } = await administer<{ response: { access_token: string } }>('POST', '/user/get-token-with-api-key', { email, api_key: key });
  const monthly = await user('monthly@example.org', { monthlyTokens: much }, {});
  const daily = { monthlyTokens: much, dailyTokens: much };
  const all = await user('all@example.org', daily, daily, { monthlyTokens: much });
  const toNone = { than: 'a key without limits', says: '≤ 1.1 × no limits', times: 1.1 };
  return [
    { ...bearer(key), what: 'a key without limits' },
    { ...bearer(response.access_token), what: 'an access token', bar: { than: 'a key without limits', says: '≤ 1.05 × a key', times: 1.05 } },
    { ...bearer(monthly), what: 'a limit of the month' },
    { ...bearer(all), what: 'limits of user, key and team, of month and day', bar: toNone },
  ];
}
