/** Throughput of two workers beside one, on two cores that they share with clients, provider and database. */
import { chatBody } from './bodies.ts';
import { open, type Contestant } from './contestants/index.ts';
import { cpuTime } from './processes.ts';
import { atLeast, type Question } from './question.ts';
import { complain, median, ratio } from './rounds.ts';

const clients = 64;
const warmUpSeconds = 5;

export const workers: Question = {
  name: 'workers',
  async ask(rig) {
    if (rig.present(['dragoman']).length === 0) return [];
    return rig.withUpstream({}, async (upstreamPort) => {
      const contestants: Contestant[] = [];
      try {
        for (const count of [1, 2])
          contestants.push(await open('dragoman', { folder: rig.place(), upstreamPort, postgres: rig.postgres, unpinned: true, workers: count }));
        const body = chatBody({ bytes: 1000 });
        for (const contestant of contestants) await rig.clients(contestant, { body, clients, seconds: warmUpSeconds });
        const rates = contestants.map((): number[] => []);
        const costs = contestants.map((): number[] => []);
        for (let round = 0; round < rig.options.rounds; round++) {
          for (const [at, contestant] of contestants.entries()) {
            const before = cpuTime(contestant.pid);
            const seen = await rig.clients(contestant, { body, clients, seconds: rig.options.seconds });
            const after = cpuTime(contestant.pid);
            complain(rig, contestant.name, seen, 0);
            rates[at]!.push(seen.requests / seen.seconds);
            costs[at]!.push((after.user + after.system - before.user - before.system) / Math.max(1, seen.requests));
          }
        }
        const times = ratio(rates[1]!, rates[0]);
        const row = (what: string, at: number) => ({
          what: `chat 1 KB a second, ${what}, two cores`,
          who: 'dragoman',
          value: median(rates[at]!),
          note: `${median(costs[at]!).toFixed(0)} µs CPU each`,
        });
        return [row('one worker', 0), { ...row('two workers', 1), bars: [atLeast(`≥ 1.5 × one (${times?.toFixed(2)})`, times, 1.5)] }];
      } finally {
        await Promise.all(contestants.map((contestant) => contestant.stop()));
      }
    });
  },
};
