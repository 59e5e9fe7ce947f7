import { relative } from 'node:path';
import { Command, CommanderError } from 'commander';
import { BadSettings, settingsOptions, type SettingsArgs } from './config/index.ts';
import { doctorCommand } from './cli/doctor-command.ts';
import { holderCommands } from './cli/holder-commands.ts';
import { journalCommand } from './cli/journal-command.ts';
import { lessonCommands } from './cli/lesson-commands.ts';
import { keyCommands } from './cli/key-commands.ts';
import { logsCommand } from './cli/logs-command.ts';
import { Fault } from './core/fault.ts';
import { CliError } from './cli/cli-error.ts';
import { WrongMasterKey } from './store/master-key.ts';
import { userCommands } from './cli/user-commands.ts';
import { version } from './app/version.ts';

const isWrongUsage = (error: unknown) => (error instanceof CliError || error instanceof Fault) && error.status === 400;

/** The command line. Exit codes: 0 success, 1 failure, 2 wrong usage or invalid settings. */
async function main(): Promise<void> {
  const program = new Command('dragoman')
    .description('AI gateway: OpenAI, Anthropic and Gemini APIs for your clients, any provider behind them.')
    .version(version)
    .addHelpText('after', '\nFor the options of the server: dragoman serve --help')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'dragoman: ')) })
    .exitOverride();

  const serve = program
    .command('serve', { isDefault: true })
    .description('Start the server. This is the default command.')
    .allowExcessArguments() // a misspelt command ends up here
    .action(async (options: SettingsArgs, { args: [word] }: Command) => {
      if (word !== undefined) program.error(`dragoman: There is no command ${word}. Run dragoman --help for a list of commands.`);
      return (await import('./cli/serve.ts')).run(options);
    });
  for (const { flags, description } of settingsOptions) serve.option(flags, description);

  program
    .command('init')
    .description('Write a commented dragoman.yaml to the current folder.')
    .option('--json', 'Print JSON.')
    .action(async ({ json }: { json?: true }) => {
      const { writeSettingsFile } = await import('./cli/init.ts');
      const file = writeSettingsFile(process.cwd());
      console.log(json ? JSON.stringify({ file }) : `Wrote ${relative(process.cwd(), file)}. Every setting in it is commented out: uncomment what you need.`);
    });

  userCommands(program);
  keyCommands(program);
  logsCommand(program);
  holderCommands(program);
  journalCommand(program);
  lessonCommands(program);
  doctorCommand(program);

  await program.parseAsync();
}

try {
  await main();
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  if (error instanceof BadSettings || error instanceof WrongMasterKey) {
    console.error(error.message);
    process.exit(2);
  }
  console.error(`dragoman: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(isWrongUsage(error) ? 2 : 1);
}
