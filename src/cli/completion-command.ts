import { Argument, type Command } from 'commander';

/** `dragoman completion bash|zsh|fish`: a script made from the commands as they are. */
export function completionCommand(program: Command): void {
  program
    .command('completion')
    .description('Print a completion script: source <(dragoman completion bash), or write it to where your shell looks for them.')
    .addArgument(new Argument('<shell>', 'The shell.').choices(['bash', 'zsh', 'fish']))
    .action((shell: 'bash' | 'zsh' | 'fish') => console.log(scripts[shell](wordsOf(program))));
}

/** What may follow each beginning of a command line, by its words: `user` → add, list, …; options are those of the command. */
type Words = ReadonlyMap<string, readonly string[]>;

function wordsOf(program: Command): Words {
  const words = new Map<string, readonly string[]>();
  const visit = (command: Command, path: string) => {
    const options = command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));
    const shells = command.name() === 'completion' ? ['bash', 'zsh', 'fish'] : [];
    words.set(path, [...command.commands.map((one) => one.name()), ...shells, ...options, '--help']);
    for (const one of command.commands) visit(one, path === '' ? one.name() : `${path} ${one.name()}`);
  };
  visit(program, '');
  return words;
}

/** The lines of a `case` over the words before the cursor. */
const cases = (words: Words) => [...words].map(([path, next]) => `    '${path}') words='${next.join(' ')}' ;;`).join('\n');

const scripts: Readonly<Record<'bash' | 'zsh' | 'fish', (words: Words) => string>> = {
  bash: (words) => `_dragoman() {
  local path='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] && break; path="\${path:+$path }$word"; done
  case "$path" in
${cases(words)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _dragoman dragoman`,
  zsh: (words) => `#compdef dragoman
_dragoman() {
  local line='' words_='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do [[ $word == -* ]] && break; line="\${line:+$line }$word"; done
  case "$line" in
${cases(words).replaceAll(" words='", " words_='")}
  esac
  compadd -- \${=words_}
  [[ $words[CURRENT] == -* ]] || _files
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _dragoman dragoman`,
  fish: (words) => `function __dragoman_line
  set -l words (commandline -opc)[2..-1]
  set -l line
  for word in $words
    string match -q -- '-*' $word; and break
    set -a line $word
  end
  echo "$line"
end
${[...words].map(([path, next]) => `complete -c dragoman -n 'test (__dragoman_line) = "${path}"' -a '${next.join(' ')}'`).join('\n')}`,
};
