/** Folders of `src/dialects/` by the name of their dialect. */
const folders: Readonly<Record<string, string>> = {
  'openai-chat': 'openai/chat',
  'openai-responses': 'openai/responses',
  'anthropic-messages': 'anthropic',
  gemini: 'gemini',
};

/** A file of recorded traffic of a dialect. */
export const recordingOf = (dialect: string, path: string): URL => new URL(`../../src/dialects/${folders[dialect]}/recordings/${path}`, import.meta.url);
