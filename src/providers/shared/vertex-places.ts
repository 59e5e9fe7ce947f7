import { trimEnd } from '#kit/text/trim-end';
import type { ProviderSettings } from './provider.ts';

/** A region of Google's cloud platform. */
export interface VertexPlace {
  readonly region: string;
  readonly url: URL;
  /** The names of the residency lists that contain it. */
  readonly residency: readonly string[];
  /** The path of the project there, to which that of a model is appended. */
  readonly base: string;
}

/** The regions of the settings; none where they are incomplete. */
export function vertexPlaces({ baseUrl, project = '', regions = [], residency = {} }: ProviderSettings): readonly VertexPlace[] {
  const projectWord = inProject(project);
  if (!baseUrl || projectWord === undefined) return [];
  const lists = Object.keys(residency);
  return regions.map((entry) => {
    const region = typeof entry === 'string' ? entry : entry.name;
    const url = new URL((typeof entry === 'string' ? baseUrl : entry.baseUrl).replaceAll('{region}', region));
    url.host = otherHosts.get(url.host) ?? url.host;
    return {
      region,
      url,
      residency: lists.filter((list) => residency[list]?.includes(region)),
      base: `${trimEnd(url.pathname, '/')}/projects/${projectWord}/locations/${inPath(region)}`,
    };
  });
}

/** Hosts that the pattern of regions makes of other locations, and the real ones. https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations */
const otherHosts: ReadonlyMap<string, string> = new Map([
  ['global-aiplatform.googleapis.com', 'aiplatform.googleapis.com'],
  ['us-aiplatform.googleapis.com', 'aiplatform.us.rep.googleapis.com'],
  ['eu-aiplatform.googleapis.com', 'aiplatform.eu.rep.googleapis.com'],
]);

/** `gemini-2.5-flash`, `google/gemini-2.5-flash` or `publishers/google/models/gemini-2.5-flash`; models of other publishers need a provider of their own. */
export function modelPath(model: string, publisher: string): string | undefined {
  const match = /^(?:publishers\/([^/]+)\/models\/|([^/]+)\/)?([^/]+)$/.exec(model);
  if (!match) return undefined;
  const [, platform, short, name] = match;
  if ((platform ?? short ?? publisher) !== publisher) return undefined;
  const [publisherWord, modelWord] = [inPath(publisher), inPath(name!)];
  return publisherWord === undefined || modelWord === undefined ? undefined : `publishers/${publisherWord}/models/${modelWord}`;
}

/** IDs of domain-scoped projects have a colon: `example.com:shop`. */
const inProject = (project: string): string | undefined => (/^[a-z0-9][a-z0-9.:_-]{0,127}$/i.test(project) ? encodeURIComponent(project) : undefined);

/** A segment; `@` precedes the version of a model: `claude-sonnet-4-5@20250929`. */
const segment = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$/;

/** One path segment of a URL. @returns undefined for a name that cannot be one: it must not change the rest of the URL */
export const inPath = (word: string): string | undefined => (segment.test(word) ? encodeURIComponent(word).replace('%40', '@') : undefined);
