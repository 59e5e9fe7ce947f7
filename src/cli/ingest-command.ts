import { openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { sharedOptions } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { plain } from './table.ts';
import type { UserClient, UserOptions } from './user-client.ts';

type IngestOptions = UserOptions & { readonly dataset: string };

interface ShownFile {
  readonly id: number;
  readonly filename: string;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';
  readonly reason: string | null;
  readonly passages: number;
}

const pauseMilliseconds = 300;

export function ingestCommand(program: Command): void {
  sharedOptions(
    program
      .command('ingest')
      .description('Put files into a dataset, and wait until they can be found. A dataset of this name is made where there is none.')
      .argument('<files...>', 'The files.')
      .requiredOption('--dataset <name>', 'The dataset: its full name, or the short one of a dataset of the user.')
      .option('--email <address>', 'The user who does it, on the machine of the server and without --key. Default: the first administrator.'),
    'An API key of the user, for use with --url',
  ).action(async (paths: readonly string[], { dataset, ...options }: IngestOptions) => {
    for (const path of paths) await mustBeFile(path);
    const { openUserClient } = await import('./user-client.ts');
    const client = await openUserClient(options);
    const root = `/server/mine/datasets/${await datasetOf(client, dataset)}/files`;
    const files: ShownFile[] = [];
    for (const path of paths) {
      const file = await putIn(client, root, path).catch((error: unknown) => unfit(error, path));
      files.push(file);
      if (!options.json) console.log(lineOf(file));
    }
    if (options.json) console.log(JSON.stringify({ items: files }));
    const failed = files.filter(({ state }) => state !== 'done').length;
    if (failed > 0) throw new CliError(`${failed} of ${files.length} files were not ingested.`, 422);
  });
}

async function mustBeFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw new CliError(`${path} is ${found ? 'no file' : 'not there'}.`, 400);
}

async function datasetOf(client: UserClient, name: string): Promise<number> {
  const idOf = async (dataset: string) => (await client.ask<{ response: { id: number } }>('POST', '/server/get-dataset-info', { dataset })).response.id;
  try {
    return await idOf(name);
  } catch (error) {
    if (!(error instanceof CliError) || error.status !== 404) throw error;
    return idOf((await client.ask<{ dataset: string }>('POST', '/user/add-dataset', { dataset: name })).dataset);
  }
}

/** @returns the file when its job is over */
async function putIn(client: UserClient, root: string, path: string): Promise<ShownFile> {
  const body = new FormData();
  body.append('file', await openAsBlob(path), basename(path));
  const answer = await client.send('POST', root, { body });
  const { items } = (await answer.json()) as { items: readonly [ShownFile] };
  for (let [file] = items; ; file = await client.ask<ShownFile>('GET', `${root}/${file.id}`)) {
    if (file.state !== 'waiting' && file.state !== 'running') return file;
    await sleep(pauseMilliseconds);
  }
}

/** What is wrong with one file is said of it, and the others go on. @throws whatever else it is */
function unfit(error: unknown, path: string): ShownFile {
  if (!(error instanceof CliError) || ![400, 413, 415, 422].includes(error.status)) throw error;
  return { id: 0, filename: basename(path), state: 'failed', reason: error.message, passages: 0 };
}

const lineOf = ({ filename, state, reason, passages }: ShownFile) =>
  state === 'done'
    ? `${plain(filename)}: ${passages} ${passages === 1 ? 'passage' : 'passages'}`
    : `${plain(filename)}: ${state}${reason === null ? '' : `: ${plain(reason)}`}`;
