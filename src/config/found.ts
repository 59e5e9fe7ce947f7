import type { EnvironmentProvider, ProviderKind } from '#core/provider-kind';
import { singles, type Layer, type Single } from './layer.ts';
import { ollamaAddress } from './ollama.ts';
import type { Settings } from './schema/index.ts';
import type { Variables } from './variables.ts';

interface Known extends Omit<EnvironmentProvider, 'baseUrl'> {
  readonly dialect: string;
  readonly baseUrl?: string;
  /** The provider fetches no media URLs itself. */
  readonly mediaUrls?: 'fetched';
  readonly read?: (address: string) => string;
}

/** The source of a provider that nobody has configured. */
export const machinesOllama = 'Ollama on this machine';

/** A provider on the machine itself. It ranks after those with a key. */
const local: Known = { name: 'ollama', dialect: 'openai-chat', mediaUrls: 'fetched', address: 'OLLAMA_HOST', read: (text) => `${ollamaAddress(text)}/v1` };

/**
 * Providers that need no settings file. Each one that the environment configures is enabled, with lower precedence than the file; without a `models:` section the
 * first one found answers every other chat name. `ollama` is the URL of an Ollama on this machine; OLLAMA_HOST overrides it.
 */
export function foundProviders(env: Variables, ollama: string | undefined, hasModels: boolean, kinds: readonly ProviderKind[]): Layer {
  const known: readonly Known[] = [...kinds.flatMap(({ dialect, fromEnvironment }) => (fromEnvironment ? [{ dialect, ...fromEnvironment }] : [])), local];
  const found = known.flatMap(({ name, dialect, mediaUrls, key = '', address = '', baseUrl, read = (text) => text }) => {
    const local = name === 'ollama' && ollama !== undefined ? { value: ollama, name: machinesOllama } : undefined;
    const asked = env[address] ? { value: env[address], name: address } : local;
    const apiKey = env[key] ? { value: env[key], name: key } : undefined;
    const origin = apiKey?.name ?? asked?.name;
    if (origin === undefined) return [];
    const path = ['providers', name];
    const settings: Single[] = [
      { path, name: origin, value: { dialect, ...(mediaUrls ? { mediaUrls } : {}) } },
      { path: [...path, 'baseUrl'], name: asked?.name ?? origin, value: asked ? read(asked.value) : baseUrl },
      ...(apiKey ? [{ path: [...path, 'apiKeys'], name: apiKey.name, value: [apiKey.value] }] : []),
    ];
    return [{ name, origin, settings }];
  });
  const [first] = found;
  const other: Single[] = first && !hasModels ? [{ path: ['models', '*'], name: first.origin, value: { targets: [{ provider: first.name }] } }] : [];
  return singles([...found.flatMap((one) => one.settings), ...other]);
}

/** The kinds of the built-in models, which need no entry. */
const builtIn = { 'built-in': 'chat', 'built-in-embedding': 'embedding', 'built-in-speech': 'speech' } as const;

export const builtInKind = (name: string) => (Object.hasOwn(builtIn, name) ? builtIn[name as keyof typeof builtIn] : undefined);

/** The plan of a user who is added without one. */
export const defaultPlan = (plans: Settings['plans']): string => (plans['free'] ? 'free' : 'unlimited');

/** The default models. "*" is never one of them, since it names no model. */
export function defaultNames(
  given: Pick<Settings['defaults'], 'fallback'> & Partial<Settings['defaults']>,
  { providers, models, hidesBuiltIn }: Pick<Settings, 'providers' | 'models' | 'hidesBuiltIn'>,
): Settings['defaults'] {
  const hasProviders = Object.keys(providers).length > 0;
  const own = hasProviders || hidesBuiltIn ? Object.entries(models).filter(([name]) => name !== '*' && !builtInKind(name)) : [];
  const first = (kind: string) => own.find(([, model]) => model.kind === kind)?.[0];
  const { chat = first('chat') ?? 'built-in', speech = first('speech') ?? 'built-in-speech', fallback } = given;
  const embedding = given.embedding ?? first('embedding') ?? (hasProviders || hidesBuiltIn ? undefined : 'built-in-embedding');
  return { chat, ...(embedding === undefined ? {} : { embedding }), speech, fallback, gencompat: given.gencompat ?? chat, followUp: given.followUp ?? chat };
}
