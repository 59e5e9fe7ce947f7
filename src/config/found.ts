import type { EnvironmentProvider, ProviderKind } from '#core/provider-kind';
import { singles, type Layer, type Single } from './layer.ts';
import { ollamaAddress } from './ollama.ts';
import type { Settings } from './schema/index.ts';
import type { Variables } from './variables.ts';

interface Known extends Omit<EnvironmentProvider, 'baseUrl'> {
  readonly dialect: string;
  readonly baseUrl?: string;
  /** It opens no addresses itself. */
  readonly mediaUrls?: 'fetched';
  readonly read?: (address: string) => string;
}

/** The one that is found on the machine itself, after those with a key. */
const local: Known = { name: 'ollama', dialect: 'openai-chat', mediaUrls: 'fetched', address: 'OLLAMA_HOST', read: (text) => `${ollamaAddress(text)}/v1` };

/**
 * Providers that need no file: who is found is switched on, below the file, and without a `models:` section the first one found answers every other chat name.
 * `ollama` is the address of one that runs here; OLLAMA_HOST comes first.
 */
export function foundProviders(env: Variables, ollama: string | undefined, hasModels: boolean, kinds: readonly ProviderKind[]): Layer {
  const known: readonly Known[] = [...kinds.flatMap(({ dialect, fromEnvironment }) => (fromEnvironment ? [{ dialect, ...fromEnvironment }] : [])), local];
  const found = known.flatMap(({ name, dialect, mediaUrls, key = '', address = '', baseUrl, read = (text) => text }) => {
    const local = name === 'ollama' && ollama !== undefined ? { value: ollama, name: 'Ollama on this machine' } : undefined;
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

/** The models that need no entry, and what they are. */
const builtIn = { 'built-in': 'chat', 'built-in-embedding': 'embedding', 'built-in-speech': 'speech' } as const;

export const builtInKind = (name: string) => (Object.hasOwn(builtIn, name) ? builtIn[name as keyof typeof builtIn] : undefined);

/** The plan of users that are added without one. */
export const defaultPlan = (plans: Settings['plans']): string => (plans['free'] ? 'free' : 'unlimited');

/** The names that stand in for no name. "*" is none of them: it says nothing about a model. */
export function defaultNames(given: Partial<Settings['defaults']>, { providers, models }: Pick<Settings, 'providers' | 'models'>): Settings['defaults'] {
  const own = Object.keys(providers).length > 0 ? Object.entries(models).filter(([name]) => name !== '*' && !builtInKind(name)) : [];
  const first = (kind: string) => own.find(([, model]) => model.kind === kind)?.[0];
  const { chat = first('chat') ?? 'built-in', embedding = first('embedding') ?? 'built-in-embedding', speech = first('speech') ?? 'built-in-speech' } = given;
  return { chat, embedding, speech, gencompat: given.gencompat ?? chat, followUp: given.followUp ?? chat };
}
