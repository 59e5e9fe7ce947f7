/**
 * What the mechanisms of Dragoman cost: one warm process is compared with itself, with one or several of them off in turn, and with the floor in the same
 * rounds. `npm run bench -- [chat|stream|responses] --without journal,log,journal+log`
 */
import { chatBody, responseBody } from '../bodies.ts';
import type { Contestant } from '../contestants/index.ts';
import type { Rig } from '../rig.ts';
import { median, spentBy, warmUp } from '../rounds.ts';

const names = ['journal', 'shipping', 'prompts', 'log', 'request', 'result', 'rules', 'upstream', 'headers', 'keeping', 'together', 'cohorts'];

const loads = {
  chat: { operation: 'chat/completions', body: chatBody({ bytes: 1000 }) },
  stream: { operation: 'chat/completions', body: chatBody({ bytes: 1000, stream: true }) },
  responses: { operation: 'responses', body: responseBody({}) },
};

/** @param asked names, joined by `+` where several are off together. @param question of a chat, of one that is streamed, or of a response that is stored. @throws Error for an unknown one */
export async function ablation(rig: Rig, asked: readonly string[], question: keyof typeof loads): Promise<void> {
  const unknown = asked.flatMap((one) => one.split('+')).filter((one) => !names.includes(one));
  if (unknown.length > 0) throw new Error(`There is no mechanism ${unknown.join(', ')}: there are ${names.join(', ')}.`);
  const { rounds, seconds } = rig.options;
  const { operation, body } = loads[question];
  await rig.withContestants(rig.present(['floor', 'dragoman']), { ablated: true }, async (started) => {
    const contestants = started.map((one) => ({ ...one, path: one.path.replace('chat/completions', operation) }));
    const [floor, dragoman] = contestants as [Contestant, Contestant];
    const load = { body, clients: 32 };
    for (const one of contestants) await warmUp(rig, one, load, rig.options.warmUp ?? 30_000);
    const turns = ['floor', '', ...asked];
    const found = new Map<string, number[]>(turns.map((turn) => [turn, []]));
    for (let round = 0; round < rounds; round++) {
      for (const at of turns.keys()) {
        const turn = turns[(at + round) % turns.length]!;
        if (turn !== 'floor') await switchOff(dragoman, turn);
        found.get(turn)!.push(await spentBy(rig, turn === 'floor' ? floor : dragoman, load, seconds));
      }
    }
    print(found);
  });
}

async function switchOff({ ablation: port }: Contestant, turn: string): Promise<void> {
  await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: turn });
}

function print(found: ReadonlyMap<string, readonly number[]>): void {
  const all = found.get('')!;
  console.log(`| without | CPU µs, median | least | less than with all, median of rounds | × floor |\n|--|--|--|--|--|`);
  for (const [turn, cpu] of found) {
    const less = median(all.map((value, round) => value - cpu[round]!));
    const floor = median(cpu.map((value, round) => value / found.get('floor')![round]!));
    const name = turn === 'floor' ? '(the floor)' : turn === '' ? '(nothing)' : turn;
    console.log(`| ${name} | ${median(cpu).toFixed(0)} | ${Math.min(...cpu).toFixed(0)} | ${less.toFixed(0)} | ${floor.toFixed(2)} |`);
  }
}
