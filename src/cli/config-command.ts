import type { Command } from 'commander';
import { BadSettings, readSettings, runningOllama, settingsFile, unreadSaid } from '#config/index';

export function configCommand(program: Command): void {
  const config = program.command('config').description('Check the settings.');
  config
    .command('check')
    .description('Check the settings file and the environment as a start would, and list all mistakes. Exit code 2 if there are any.')
    .option('--config <file>', 'Settings file. Default: ./dragoman.yaml, if it exists.')
    .option('--json', 'Print JSON.')
    .action(async ({ json, ...args }: { json?: true; config?: string }) => {
      const { providerModules } = await import('#providers/modules'); // loaded here, since it brings all dialects
      let file: string | undefined;
      try {
        file = settingsFile({ args });
        const { notInEffect, unread, unreadLines, unfilled, missing, unused } = readSettings({ kinds: providerModules, args, ollama: await runningOllama() });
        const later = notInEffect.length === 0 ? '' : ` Not yet in effect: ${notInEffect.join(', ')}.`;
        const text = [`${file ?? 'The environment'}: no mistakes.${later}`, ...unreadLines, ...unread.map(unreadSaid), ...unfilled, ...missing, ...unused].join(
          '\n',
        );
        console.log(json ? JSON.stringify({ ok: true, file: file ?? null, problems: [], notInEffect, unread, unreadLines, unfilled, missing, unused }) : text);
      } catch (error) {
        if (!(error instanceof BadSettings)) throw error;
        if (!json) throw error;
        console.log(
          JSON.stringify({
            ok: false,
            file: file ?? null,
            problems: error.problems,
            notInEffect: [],
            unread: [],
            unreadLines: [],
            unfilled: [],
            missing: [],
            unused: [],
          }),
        );
        process.exitCode = 2;
      }
    });
}
