/** How much more two workers answer than one, on two cores that they share with clients, provider and database. */
import { chatBody } from './bodies.ts';
import { open, type Door } from './contestants.ts';
import { atLeast, type Question } from './question.ts';
import { complain, median, ratio } from './rounds.ts';

const clients = 64;
const warmUpSeconds = 5;

export const workers: Question = {
  name: 'workers',
  async ask(rig) {
    if (rig.present(['dragoman']).length === 0) return [];
    return rig.withUpstream({}, async (upstreamPort) => {
      const doors: Door[] = [];
      try {
        for (const count of [1, 2])
          doors.push(await open('dragoman', { folder: rig.place(), upstreamPort, postgres: rig.postgres, unpinned: true, workers: count }));
        const body = chatBody({ bytes: 1000 });
        for (const door of doors) await rig.clients(door, { body, clients, seconds: warmUpSeconds });
        const found = doors.map((): number[] => []);
        for (let round = 0; round < rig.wishes.rounds; round++) {
          for (const [at, door] of doors.entries()) {
            const seen = await rig.clients(door, { body, clients, seconds: rig.wishes.seconds });
            complain(rig, door.name, seen, 0);
            found[at]!.push(seen.requests / seen.seconds);
          }
        }
        const [one = [], two = []] = found;
        const times = ratio(two, one);
        return [
          { what: 'chat 1 KB a second, one worker, two cores', who: 'dragoman', value: median(one) },
          {
            what: 'chat 1 KB a second, two workers, two cores',
            who: 'dragoman',
            value: median(two),
            note: `${times?.toFixed(2)} × one`,
            bars: [atLeast('≥ 1.5 × one', times, 1.5)],
          },
        ];
      } finally {
        await Promise.all(doors.map((door) => door.stop()));
      }
    });
  },
};
