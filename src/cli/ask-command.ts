import type { Command } from 'commander';
import { placeOf } from '#core/passages';
import { citationMarksIn } from '#kit/text/citation-marks';
import { sharedOptions } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { plain } from './table.ts';
import type { UserClient, UserOptions } from './user-client.ts';

type AskOptions = UserOptions & { readonly model?: string; readonly dataset?: string };

/** What the last object of an answer has that is printed. */
interface Answered {
  readonly status: number;
  readonly message: string;
  readonly citations: readonly { readonly index: number; readonly dataset: string; readonly filename: string; readonly page: number | null }[];
  readonly sources: readonly { readonly index: number; readonly title: string; readonly url: string }[];
}

type Frame = Answered | { readonly type: 'yield'; readonly delta: string };

export function askCommand(program: Command): void {
  sharedOptions(
    program
      .command('ask')
      .description('Ask a question, and print the answer as it comes, with what it cites below it.')
      .argument('<question>', 'The question.')
      .option('--model <name>', 'The model. Default: defaults.chat in the settings.')
      .option(
        '--dataset <names>',
        'Datasets to look it up in, separated by commas: full names, or short ones of datasets of the user; all: every one. Default: none.',
      )
      .option('--email <address>', 'The user who asks, on the machine of the server and without --key. Default: the first administrator.'),
    'An API key of the user, for use with --url',
  ).action(async (question: string, { model, dataset, ...options }: AskOptions) => {
    const { openUserClient } = await import('./user-client.ts');
    const client = await openUserClient(options);
    const datasets = dataset === undefined ? {} : { dataset: await fullNames(client, dataset) };
    const answer = await client.send('POST', '/server/query', {
      body: JSON.stringify({ message: question, streaming: true, ...(model === undefined ? {} : { model }), ...datasets }),
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    });
    let last: Answered | undefined;
    for await (const frame of framesOf(answer)) {
      if (!('delta' in frame)) last = frame;
      else if (!options.json) process.stdout.write(lines(frame.delta));
    }
    if (!last) throw new CliError('The server ended its answer too early.', 502);
    if (last.status >= 400) throw new CliError(last.message, last.status);
    console.log(options.json ? JSON.stringify(last) : citedIn(last));
  });
}

/** @throws CliError 404 for a dataset that there is not, or that the user may not read */
async function fullNames(client: UserClient, names: string): Promise<string> {
  const full: string[] = [];
  for (const name of names.split(',').map((one) => one.trim())) {
    const isOne = !/^(?:all|none|)$/.test(name);
    full.push(isOne ? (await client.ask<{ response: { name: string } }>('POST', '/server/get-dataset-info', { dataset: name })).response.name : name);
  }
  return full.join(',');
}

/** Text for a terminal that may have several lines. */
const lines = (text: string) => text.split('\n').map(plain).join('\n');

/** The files and pages that the answer cites by their numbers. */
function citedIn({ message, citations, sources }: Answered): string {
  const numbers = new Set(citationMarksIn(message).flatMap((mark) => mark.numbers));
  const cited = [
    ...citations.map((one) => ({ index: one.index, text: `${placeOf(one)} (${one.dataset})` })),
    ...sources.map(({ index, title, url }) => ({ index, text: `${title} ${url}` })),
  ].filter(({ index }) => numbers.has(index));
  return cited.length === 0 ? '' : `\n\n${cited.map(({ index, text }) => `[${index}] ${plain(text)}`).join('\n')}`;
}

/** The objects of server-sent events. */
async function* framesOf(answer: Response): AsyncGenerator<Frame> {
  let text = '';
  for await (const piece of (answer.body ?? new ReadableStream<never>()).pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      const json = event.split('\n').find((line) => line.startsWith('data: '));
      if (json) yield JSON.parse(json.slice(6)) as Frame;
    }
  }
}
