/** Companies, and their clouds, whose interfaces differ in ways that are publicly known. */
export type Vendor = 'openai' | 'azure' | 'anthropic' | 'google' | 'vertex' | 'deepseek' | 'moonshot' | 'mistral' | 'groq' | 'openrouter';

/** Hosts, exact or as the end of a name (`.openai.azure.com`). */
const hosts: readonly (readonly [host: string, Vendor])[] = [
  ['api.openai.com', 'openai'],
  ['.api.openai.com', 'openai'], // regional, such as eu.api.openai.com
  ['.openai.azure.com', 'azure'],
  ['.cognitiveservices.azure.com', 'azure'],
  ['.services.ai.azure.com', 'azure'],
  ['api.anthropic.com', 'anthropic'],
  ['generativelanguage.googleapis.com', 'google'],
  ['aiplatform.googleapis.com', 'vertex'],
  ['-aiplatform.googleapis.com', 'vertex'],
  ['.rep.googleapis.com', 'vertex'], // aiplatform.eu.rep.googleapis.com
  ['api.deepseek.com', 'deepseek'],
  ['api.moonshot.ai', 'moonshot'],
  ['api.moonshot.cn', 'moonshot'],
  ['api.mistral.ai', 'mistral'],
  ['api.groq.com', 'groq'],
  ['openrouter.ai', 'openrouter'],
];

/** Do models of many vendors answer at an address of Azure's? Of most of them it is not known what they take. */
export const hasManyVendors = (baseUrl: string): boolean => hostOf(baseUrl).endsWith('.services.ai.azure.com');

/** Other hosts of OpenAI's interface whose models have names of their own. */
const hostsOfOthers: readonly string[] = [
  'api.x.ai',
  '.api.aws',
  'api.voyageai.com',
  'api.jina.ai',
  'api.cerebras.ai',
  'api.cohere.ai',
  'api.deepinfra.com',
  'api.fireworks.ai',
  'api.z.ai',
  'api.minimax.io',
  'api.novita.ai',
  'integrate.api.nvidia.com',
  'api.perplexity.ai',
  '.aliyuncs.com',
  'api.sambanova.ai',
  '.snowflakecomputing.com',
  'api.together.xyz',
  'router.huggingface.co',
];

/** May a model with a name of OpenAI's be there? A server that nobody knows may have one. */
export function mayHaveModelsOfOpenAI(baseUrl: string): boolean {
  const vendor = vendorOf(baseUrl);
  const host = hostOf(baseUrl);
  return (
    vendor === 'openai' ||
    vendor === 'azure' ||
    (vendor === undefined && !hostsOfOthers.some((one) => (one.startsWith('.') ? host.endsWith(one) : host === one)))
  );
}

/** The host of an address, whose port may be a placeholder. */
export const hostOf = (baseUrl: string): string => /^https?:\/\/([^/:?#]+)/i.exec(baseUrl)?.[1]?.toLowerCase() ?? '';

/** What tells providers apart whose names in the settings say nothing: the vendor, else the host. */
export const originOf = (baseUrl: string): string => vendorOf(baseUrl) ?? URL.parse(baseUrl.replaceAll('{region}', 'region'))?.host ?? baseUrl;

/**
 * Who answers at an address. What a vendor and its models take is in a table of each wire, in the folders of the providers; any other server teaches it by what
 * it refuses.
 * @param baseUrl of a provider; `{region}` may be part of its host
 */
export function vendorOf(baseUrl: string): Vendor | undefined {
  const host = hostOf(baseUrl);
  return hosts.find(([one]) => (/^[.-]/.test(one) ? host.endsWith(one) : host === one))?.[1];
}
