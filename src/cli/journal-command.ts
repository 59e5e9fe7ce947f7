import type { Command } from 'commander';
import type { AdoptOptions } from './journal-adopt.ts';

/** `dragoman journal adopt FOLDER` */
export function journalCommand(program: Command): void {
  program
    .command('journal')
    .description('Recover the journal of a lost machine.')
    .command('adopt <folder>')
    .description(
      "Record the usage in the journals of a lost machine's data folder, and free the quota that the machine had leased. Its server must never run again.",
    )
    .option('--json', 'Print one JSON object per holder.')
    .option('--config <file>', 'Settings file. Default: ./dragoman.yaml, if it exists.')
    .option('--data <folder>', "This machine's data folder. Default: ./data, unless set elsewhere.")
    .option('--database-url <url>', 'PostgreSQL 15 or newer, if the data is there.')
    .action(async (folder: string, options: AdoptOptions) => (await import('./journal-adopt.ts')).adopt(folder, options)); // loaded here, since it brings the ledger
}
