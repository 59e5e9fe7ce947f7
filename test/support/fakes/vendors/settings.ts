/** The vendors, their addresses and models, and a server's settings for them. */
import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { deepseek } from './deepseek.ts';
import { google } from './google.ts';
import { groq } from './groq.ts';
import type { Line } from './line.ts';
import { mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { ollama } from './ollama.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import type { Vendor } from './vendor.ts';
import { vertex, vertexClaude } from './vertex.ts';
import { vllm } from './vllm.ts';

export const vendors: Readonly<Record<string, Vendor>> = {
  openai,
  azure,
  anthropic,
  google,
  deepseek,
  moonshot,
  mistral,
  groq,
  openrouter,
  ollama,
  vllm,
  vertex,
  'vertex-claude': vertexClaude,
};

const hosts: Readonly<Record<string, Vendor>> = {
  'api.openai.com': openai,
  'scripted.openai.azure.com': azure,
  'api.anthropic.com': anthropic,
  'generativelanguage.googleapis.com': google,
  'us-central1-aiplatform.googleapis.com': vertex,
  'us-east5-aiplatform.googleapis.com': vertexClaude,
  'api.deepseek.com': deepseek,
  'api.moonshot.ai': moonshot,
  'api.moonshot.cn': moonshot,
  'api.mistral.ai': mistral,
  'api.groq.com': groq,
  'openrouter.ai': openrouter,
};

export const addresses: readonly string[] = Object.keys(hosts);
export const vendorAt = (host: string): Vendor | undefined => hosts[host.replace(/:443$/, '')];

interface Provider {
  readonly vendor: Vendor;
  readonly dialect: string;
  readonly baseUrl: string;
  readonly more?: string;
  /** The names of its models upstream, by the name that a client uses. */
  readonly models: Readonly<Record<string, string>>;
}

/** Models whose clients use the vendor's own names. */
const same = (...names: readonly string[]): Readonly<Record<string, string>> => Object.fromEntries(names.map((name) => [name, name]));
const openaiModels = ['gpt-6-sol', 'gpt-5.5', 'gpt-5.4', 'gpt-5.2', 'gpt-5.1', 'gpt-5', 'gpt-4o', 'o3'];
const onResponses = Object.fromEntries(['gpt-6-sol', 'gpt-5', 'gpt-4o'].map((name) => [`${name}-on-responses`, name]));

const onVertex = (region: string) => `kind: vertex, project: scripted, regions: [${region}], credentials: { accessToken: key-of-vertex }, `;

const providers: Readonly<Record<string, Provider>> = {
  openai: { vendor: openai, dialect: 'openai-chat', baseUrl: 'https://api.openai.com/v1', models: same(...openaiModels) },
  'openai-responses': { vendor: openai, dialect: 'openai-responses', baseUrl: 'https://api.openai.com/v1', models: onResponses },
  azure: {
    vendor: azure,
    dialect: 'openai-chat',
    baseUrl: 'https://scripted.openai.azure.com',
    more: 'kind: azure, apiVersion: 2025-04-01-preview, ',
    models: { 'azure-gpt-6-sol': 'gpt-6-sol', 'azure-gpt-5': 'gpt-5' },
  },
  anthropic: {
    vendor: anthropic,
    dialect: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com',
    models: same('claude-opus-5-5', 'claude-sonnet-5', 'claude-opus-4-8', 'claude-opus-4-6', 'claude-haiku-4-5'),
  },
  google: {
    vendor: google,
    dialect: 'gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    models: same('gemini-3-flash-preview', 'gemini-2.5-pro', 'gemini-2.5-flash'),
  },
  vertex: {
    vendor: vertex,
    dialect: 'gemini',
    baseUrl: 'https://{region}-aiplatform.googleapis.com/v1',
    more: onVertex('us-central1'),
    models: { 'vertex-gemini-3-flash': 'gemini-3-flash-preview' },
  },
  'vertex-claude': {
    vendor: vertexClaude,
    dialect: 'anthropic-messages',
    baseUrl: 'https://{region}-aiplatform.googleapis.com/v1',
    more: onVertex('us-east5'),
    models: { 'vertex-claude-opus-4-6': 'claude-opus-4-6@default' },
  },
  deepseek: { vendor: deepseek, dialect: 'openai-chat', baseUrl: 'https://api.deepseek.com/v1', models: same('deepseek-chat', 'deepseek-v4') },
  moonshot: { vendor: moonshot, dialect: 'openai-chat', baseUrl: 'https://api.moonshot.ai/v1', models: same('kimi-k2-thinking') },
  mistral: { vendor: mistral, dialect: 'openai-chat', baseUrl: 'https://api.mistral.ai/v1', models: same('mistral-large-latest') },
  groq: { vendor: groq, dialect: 'openai-chat', baseUrl: 'https://api.groq.com/openai/v1', models: { 'gpt-oss-120b': 'openai/gpt-oss-120b' } },
  openrouter: { vendor: openrouter, dialect: 'openai-chat', baseUrl: 'https://openrouter.ai/api/v1', models: { 'glm-5': 'z-ai/glm-5' } },
  ollama: { vendor: ollama, dialect: 'openai-chat', baseUrl: '/v1', models: { 'ollama-llama3.3': 'llama3.3' } },
  vllm: { vendor: vllm, dialect: 'openai-chat', baseUrl: '/v1', models: { 'vllm-llama3.3': 'llama3.3' } },
};

/** Every model, by the name that a client uses. */
export const modelNames: readonly string[] = Object.values(providers).flatMap(({ models }) => Object.keys(models));

/** The provider of a model, by the model's name. */
export function providerOf(model: string): Provider & { readonly upstream: string } {
  const found = Object.values(providers).find(({ models }) => model in models);
  if (!found) throw new Error(`No vendor has a model ${model}.`);
  return { ...found, upstream: found.models[model]! };
}

/** @param known are they at their own host names, or all at plain addresses, where only their refusals tell who they are? */
export function settingsOf({ proxy, caFile }: Pick<Line, 'proxy' | 'caFile'>, plain: Readonly<Record<string, string>>, known: boolean): string {
  const names = Object.entries(providers);
  const addressOf = ({ vendor, baseUrl }: Provider) =>
    known && baseUrl.startsWith('https') ? baseUrl : baseUrl.replace(/^https:\/\/[^/]+|^(?=\/)/, plain[vendor.name]!);
  const entry = ([name, provider]: (typeof names)[number]) =>
    `  ${name}: { dialect: ${provider.dialect}, ${provider.more ?? ''}baseUrl: "${addressOf(provider)}"${provider.more?.includes('credentials') ? '' : `, apiKeys: ["key-of-${name}"]`} }\n`;
  const models = names.flatMap(([name, { models: all }]) =>
    Object.entries(all).map(([model, upstream]) => `  ${model}: { targets: [{ provider: ${name}, model: "${upstream}" }] }\n`),
  );
  return `
outbound: { proxy: "${proxy}", noProxy: "127.0.0.1", caFile: "${caFile}" }
providers:
${names.map(entry).join('')}models:
${models.join('')}routing: { cooldownSeconds: 0 }
`;
}
