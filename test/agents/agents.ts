/** Coding agents as their users start them: what they are configured with, and how their tools are called. */

/** Where an agent works, and whom it asks. */
export interface Task {
  /** The base URL of the gateway. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly prompt: string;
}

export interface CodingAgent {
  /** Its executable, from the folder into which its package was installed. */
  readonly program: string;
  readonly args: (task: Task) => readonly string[];
  /** It reads its prompt from its standard input. */
  readonly readsPrompt?: true;
  readonly env?: (task: Task) => Readonly<Record<string, string>>;
  /** Files in its home folder, by their paths. */
  readonly files?: (task: Task) => Readonly<Record<string, string>>;
  /** Runs a command in a shell. */
  readonly shell: (command: string, model: string) => AgentCall;
  /** How a model is asked to make a call; absent: in words that the scripted vendors know. */
  readonly asked?: (call: AgentCall) => string;
  /** Another of its tools, which reads a file: absent where the shell does that. */
  readonly read?: (path: string) => AgentCall;
}

export interface AgentCall {
  readonly tool: string;
  readonly input: object;
}

/** Executables of packages whose install scripts did not run are in the package for the machine. */
const machine = `${process.platform}-${process.arch}`;

export const agents: Readonly<Record<string, CodingAgent>> = {
  'claude-code': {
    program: `node_modules/@anthropic-ai/claude-code-${machine}/claude`,
    args: ({ model, prompt }) => ['-p', prompt, '--model', model, '--allowedTools', 'Bash,Read'],
    env: ({ url, key, model }) => ({
      ANTHROPIC_BASE_URL: `${url}/server/messages`,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_SMALL_FAST_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    shell: (command) => ({ tool: 'Bash', input: { command, description: 'Runs it' } }),
    read: (file_path) => ({ tool: 'Read', input: { file_path } }),
  },
  codex: {
    program: 'node_modules/.bin/codex',
    args: ({ prompt }) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    env: ({ key }) => ({ KEY: key }),
    files: ({ url, model }) => ({
      '.codex/config.toml': `model = "${model}"
model_provider = "dragoman"

[model_providers.dragoman]
name = "dragoman"
base_url = "${url}/server/chatcompat/v1"
env_key = "KEY"
wire_api = "responses"
`,
    }),
    // Newer models write programs that call the tools.
    shell: (cmd, model) =>
      model.startsWith('gpt-6')
        ? { tool: 'exec', input: { input: `text((await tools.exec_command(${JSON.stringify({ cmd })})).output)` } }
        : { tool: 'exec_command', input: { cmd } },
  },
  'gemini-cli': {
    program: 'node_modules/.bin/gemini',
    args: ({ model, prompt }) => ['--skip-trust', '--approval-mode', 'yolo', '-m', model, '-p', prompt],
    env: ({ url, key }) => ({ GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: `${url}/server/gencompat` }),
    files: () => ({ '.gemini/settings.json': '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' }),
    shell: (command) => ({ tool: 'run_shell_command', input: { command } }),
    read: (file_path) => ({ tool: 'read_file', input: { file_path } }),
  },
  opencode: {
    program: `node_modules/opencode-${machine}/bin/opencode`,
    args: ({ model }) => ['run', '-m', `dragoman/${model}`],
    readsPrompt: true,
    env: ({ key }) => ({ KEY: key, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    files: ({ url, model }) => ({
      '.config/opencode/opencode.json': JSON.stringify({
        $schema: 'https://opencode.ai/config.json',
        provider: {
          dragoman: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${url}/server/chatcompat/v1`, apiKey: '{env:KEY}' },
            models: { [model]: {} },
          },
        },
      }),
    }),
    shell: (command) => ({ tool: 'bash', input: { command, description: 'Runs it' } }),
    read: (filePath) => ({ tool: 'read', input: { filePath } }),
  },
  // On the native interface: /server/query.
  continue: {
    program: 'node_modules/.bin/cn',
    args: ({ prompt }) => ['--auto', '-p', prompt],
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: '0' }),
    files: ({ url, key, model }) => ({
      '.continue/config.yaml': JSON.stringify({
        name: 'dragoman',
        version: '1.0.0',
        models: [{ name: 'dragoman', provider: 'askSage', model, apiBase: `${url}/server/`, apiKey: key, env: { userApiUrl: `${url}/user` } }],
      }),
    }),
    shell: (command) => ({ tool: 'Bash', input: { command } }),
    read: (filepath) => ({ tool: 'Read', input: { filepath } }),
  },
  // On the native interface, with calls that are written into the text.
  cline: {
    program: 'node_modules/.bin/cline',
    args: ({ prompt }) => ['-y', '--json', prompt],
    files: ({ url, key, model }) => ({
      '.cline/data/globalState.json': JSON.stringify({
        actModeApiProvider: 'asksage',
        planModeApiProvider: 'asksage',
        actModeApiModelId: model,
        planModeApiModelId: model,
        asksageApiUrl: `${url}/server`,
        welcomeViewCompleted: true,
      }),
      '.cline/data/secrets.json': JSON.stringify({ asksageApiKey: key }),
    }),
    asked: ({ tool, input }) => written(tool, input),
    shell: packed,
    // It ends where the model says what came of the task.
    read: (path) => packed(`echo "${written('attempt_completion', { result: `The tool said: $(cat ${path})` })}"`),
  },
};

/** A command without the marks of calls in it: cline shows it beside its output, and both are echoed. */
function packed(command: string): AgentCall {
  return { tool: 'execute_command', input: { command: `echo ${Buffer.from(command).toString('base64')} | base64 -d | sh`, requires_approval: false } };
}

/** A call as XML, which a model that echoes it makes. */
function written(tool: string, input: object): string {
  const members = Object.entries(input).map(([name, value]) => `<${name}>${String(value)}</${name}>`);
  return `<${tool}>${members.join('')}</${tool}>`;
}
