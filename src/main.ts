import { relative } from 'node:path';
import { Command, CommanderError } from 'commander';
import { BadSettings, settingsOptions, type SettingsArgs } from './config/index.ts';
import { completionCommand } from './cli/completion-command.ts';
import { configCommand } from './cli/config-command.ts';
import { nearest } from './config/near.ts';
import { program as typed } from './config/program.ts';
import { planCommands } from './cli/plan-commands.ts';
import { teamCommands } from './cli/team-commands.ts';
import { usageCommand } from './cli/usage-command.ts';
import { doctorCommand } from './cli/doctor-command.ts';
import { holderCommands } from './cli/holder-commands.ts';
import { journalCommand } from './cli/journal-command.ts';
import { lessonCommands } from './cli/lesson-commands.ts';
import { keyCommands } from './cli/key-commands.ts';
import { askCommand } from './cli/ask-command.ts';
import { ingestCommand } from './cli/ingest-command.ts';
import { logsCommand } from './cli/logs-command.ts';
import { Fault } from './core/fault.ts';
import { CliError } from './cli/cli-error.ts';
import { endWithoutOutput } from './cli/output.ts';
import { stopWhileLoading } from './process/signals.ts';
import { startProblem } from './cli/start-problem.ts';
import { WrongMasterKey } from './store/master-key.ts';
import { userCommands } from './cli/user-commands.ts';
import { version } from './app/version.ts';

const isWrongUsage = (error: unknown) => (error instanceof CliError || error instanceof Fault) && error.status === 400;

/** Commands that go on where nobody reads what they print. */
const servers: ReadonlySet<string> = new Set(['serve', 'work']);

/** The command line. Exit codes: 0 success, 1 failure, 2 wrong usage or invalid settings. */
async function main(): Promise<void> {
  const program = new Command(typed)
    .description('AI gateway: OpenAI, Anthropic and Gemini APIs for your clients, any provider behind them.')
    .version(version)
    .addHelpText('after', '\nFor the options of the server: ' + typed + ' serve --help')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'dragoman: ')) })
    .exitOverride()
    .hook('preAction', (_, command) => {
      if (!servers.has(command.name())) endWithoutOutput();
    });

  const serve = program
    .command('serve', { isDefault: true })
    .description('Start the server. This is the default command.')
    .allowExcessArguments() // a misspelt command ends up here
    .action(async (options: SettingsArgs, { args: [word] }: Command) => {
      if (word !== undefined) refuseCommand(word, program);
      stopWhileLoading();
      return (await import('./cli/serve.ts')).run(options);
    });
  for (const { flags, description } of settingsOptions) serve.option(flags, description);

  program
    .command('init')
    .description('Write a dragoman.yaml of a few lines that work to the current folder; with --full, one with every setting as a comment.')
    .option('--full', 'Every setting, with its default or an example, as a comment.')
    .option('--json', 'Print JSON.')
    .action(async ({ json, full }: { json?: true; full?: true }) => {
      const { writeSettingsFile } = await import('./cli/init.ts');
      const file = writeSettingsFile(process.cwd(), full ? 'full' : 'short');
      const about = full ? 'Every setting in it is commented out: uncomment what you need.' : `It works as it is; ${typed} init --full lists every setting.`;
      console.log(json ? JSON.stringify({ file }) : `Wrote ${relative(process.cwd(), file)}. ${about}`);
    });

  const work = program
    .command('work')
    .description('Work on jobs (files of datasets, background responses) without listening: a further process for a PostgreSQL database and a bucket.')
    .action(async (options: SettingsArgs) => {
      stopWhileLoading();
      return (await import('./cli/serve.ts')).run(options, { listens: false });
    });
  for (const { flags, description } of settingsOptions) if (!/--(host|port|workers)\b/.test(flags)) work.option(flags, description);

  userCommands(program);
  keyCommands(program);
  ingestCommand(program);
  askCommand(program);
  logsCommand(program);
  holderCommands(program);
  journalCommand(program);
  lessonCommands(program);
  planCommands(program);
  teamCommands(program);
  usageCommand(program);
  configCommand(program);
  doctorCommand(program);
  completionCommand(program);

  const words = withoutComment(process.argv);
  const first = words[2];
  if (first !== undefined && /^\w/.test(first) && !['help', ...program.commands.map((one) => one.name())].includes(first)) refuseCommand(first, program);
  await program.parseAsync(words);
}

function refuseCommand(word: string, program: Command): never {
  return program.error(`dragoman: There is no command ${word}.${meantBy(word, program)} Run ${typed} --help for a list of commands.`);
}

/** The line without a comment: zsh hands `#` and what stands behind it to the command. */
function withoutComment(words: readonly string[]): readonly string[] {
  const at = words.indexOf('#', 2);
  return at < 0 ? words : words.slice(0, at);
}

const otherNames: Readonly<Record<string, string>> = {
  start: 'serve',
  run: 'serve',
  up: 'serve',
  server: 'serve',
  keys: 'key create',
  login: 'key create',
  stats: 'usage',
  check: 'config check',
};

function meantBy(word: string, program: Command): string {
  const meant =
    otherNames[word] ??
    nearest(
      word,
      program.commands.map((one) => one.name()),
    );
  return meant === undefined ? '' : ` Did you mean ${meant}?`;
}

try {
  await main();
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  if (error instanceof BadSettings || error instanceof WrongMasterKey) {
    console.error(error.message);
    process.exit(2);
  }
  console.error(`dragoman: ${startProblem(error)}`);
  process.exit(isWrongUsage(error) ? 2 : 1);
}
