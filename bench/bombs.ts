/** What chats wait for while files that unpack to gigabytes are sent, and how much memory these take. */
import { readFileSync, readdirSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { chatBody } from './bodies.ts';
import { open, type Contestant } from './contestants/index.ts';
import { atMost, type Question } from './question.ts';
import { complain, median } from './rounds.ts';

const clients = 4;
/** Bombs that are on their way at once. */
const bombs = 2;
const warmUpSeconds = 5;

export const bombed: Question = {
  name: 'bombs',
  async ask(rig) {
    if (rig.present(['dragoman, embedded']).length === 0) return [];
    return rig.withUpstream({}, async (upstreamPort) => {
      const contestant = await open('dragoman, embedded', { folder: rig.place(), upstreamPort, postgres: rig.postgres, unpinned: true });
      try {
        const [body, bomb] = [chatBody({ bytes: 1000 }), pdfBomb()];
        await rig.clients(contestant, { body, clients, seconds: warmUpSeconds });
        await send(contestant, bomb);
        const waits: { readonly alone: number[]; readonly bombed: number[] } = { alone: [], bombed: [] };
        let refused = 0;
        let grown = 0;
        for (let round = 0; round < rig.options.rounds; round++) {
          for (const what of ['alone', 'bombed'] as const) {
            let isOver = what === 'alone';
            const before = heldBy(contestant.pid);
            const watching = setInterval(() => (grown = Math.max(grown, heldBy(contestant.pid) - before)), 20);
            const sending = Array.from({ length: bombs }, async () => {
              while (!isOver) if ((await send(contestant, bomb)) === 422) refused++;
            });
            const seen = await rig.clients(contestant, { body, clients, seconds: rig.options.seconds });
            isOver = true;
            await Promise.all(sending);
            clearInterval(watching);
            complain(rig, contestant.name, seen, 0);
            waits[what].push(seen.whole.p99);
          }
        }
        const times = median(waits.bombed.map((wait, round) => wait / waits.alone[round]!));
        const who = contestant.name;
        return [
          { what: 'chat p99, ms', who, value: median(waits.alone) },
          {
            what: 'chat p99 while bombs are refused, ms',
            who,
            value: median(waits.bombed),
            note: `${refused} refused`,
            bars: [atMost('≤ 2 × alone', times, 2)],
          },
          { what: 'memory beyond that of chats, MB', who, value: grown / 2 ** 20, bars: [atMost('≤ 150 MB a bomb', grown / 2 ** 20, 150 * bombs)] },
        ];
      } finally {
        await contestant.stop();
      }
    });
  },
};

/** A PDF of a page whose text unpacks to 300 MB. */
function pdfBomb(): Uint8Array<ArrayBuffer> {
  const content = deflateSync(Buffer.alloc(300 * 2 ** 20));
  const head = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>',
  ].map((one, at) => `${at + 1} 0 obj\n${one}\nendobj\n`);
  const stream = `4 0 obj\n<< /Length ${content.length} /Filter /FlateDecode >>\nstream\n`;
  return new Uint8Array(
    Buffer.concat([Buffer.from(`%PDF-1.7\n${head.join('')}${stream}`), content, Buffer.from('\nendstream\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n')]),
  );
}

async function send({ port, headers }: Contestant, content: Uint8Array<ArrayBuffer>): Promise<number> {
  const form = new FormData();
  form.append('file', new Blob([content]), 'bomb.pdf');
  const sent = headers.map((line) => line.split(': ') as [string, string]);
  const answer = await fetch(`http://127.0.0.1:${port}/server/file`, { method: 'POST', body: form, headers: sent });
  await answer.arrayBuffer();
  return answer.status;
}

/** Resident bytes of a process and all that it started. */
function heldBy(pid: number): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const stat = read(`/proc/${name}/stat`);
    if (stat) parents.set(Number(name), Number(stat.split(') ').at(-1)!.split(' ')[1]));
  }
  const isOurs = (one: number | undefined): boolean => one !== undefined && (one === pid || isOurs(parents.get(one)));
  return [...parents.keys()].filter(isOurs).reduce((sum, one) => sum + Number((read(`/proc/${one}/statm`) ?? '').split(' ')[1] ?? 0) * 4096, 0);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined; // it ended
  }
}
