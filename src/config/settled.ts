import { dirname, resolve } from 'node:path';
import type { ProviderKind } from '#core/provider-kind';
import { bare } from './bare.ts';
import { filled } from './form.ts';
import { builtInKind, defaultNames, defaultPlan } from './found.ts';
import type { ProviderSettings, Settings } from './schema/index.ts';
import { formsFor } from './shape.ts';

type Given = Readonly<Record<string, unknown>>;

/** Merges the layers and fills in all defaults: the settings that the server uses. File paths are absolute; URLs have no trailing slash. */
export function settled(
  { options, environment, file, found }: { readonly options: Given; readonly environment: Given; readonly file: Given; readonly found: Given },
  { cwd, file: path, kinds }: { readonly cwd: string; readonly file: string | undefined; readonly kinds: readonly ProviderKind[] },
): Settings {
  const { 'built-in': own, ...others } = (file['models'] ?? found['models'] ?? {}) as Given;
  const offeredBy = file['models'] === undefined ? anyProvider(found) : undefined;
  const merged = {
    ...found,
    ...file,
    ...environment,
    ...options,
    providers: { ...(found['providers'] as Given), ...(file['providers'] as Given) },
    models: withKinds(own === undefined || own === false ? others : { 'built-in': own, ...others }),
    outbound: { ...(file['outbound'] as Given), ...(environment['outbound'] as Given) },
  };
  const settings: Settings = {
    ...(filled(formsFor(kinds).all, merged) as Settings),
    hidesBuiltIn: own === false,
    ...(offeredBy === undefined ? {} : { offeredBy }),
  };
  const { providers, defaults, newUsers, publicUrl, plans, data, outbound, googleCredentials } = settings;
  const folder = path === undefined ? cwd : dirname(path);
  const keyFile = googleCredentials === undefined ? undefined : resolve(cwd, googleCredentials);
  return {
    ...settings,
    ...(offeredBy === undefined ? {} : { ownNames: ownNames(providers, kinds) }),
    data: resolve((options['data'] ?? environment['data'] ?? !file['data']) ? cwd : folder, data),
    publicUrl: withoutSlash(publicUrl),
    providers: eachOf(providers, (provider) => placed(provider, folder, signsIn(provider, kinds) && keyFile)),
    ...(keyFile === undefined ? {} : { googleCredentials: keyFile }),
    defaults: defaultNames(defaults, settings),
    newUsers: { ...newUsers, plan: newUsers.plan ?? defaultPlan(plans) },
    outbound: { ...outbound, caFile: outbound.caFile && resolve(folder, outbound.caFile) },
  };
}

/** The provider of the environment that `"*"` goes to. */
const anyProvider = ({ models }: Given): string | undefined => (models as Partial<Settings['models']> | undefined)?.['*']?.targets[0]?.provider;

/** A vendor's models go to the provider with the vendor's name, else to one at its address, else to one of its dialect. */
const ownNames = (providers: Settings['providers'], kinds: readonly ProviderKind[]): Readonly<Record<string, string>> =>
  bare(
    kinds.flatMap(({ dialect, fromEnvironment: { name, baseUrl, models = [] } = { name: '', baseUrl: '' } }) => {
      const names = Object.keys(providers).filter((one) => providers[one]!.dialect === dialect);
      const own = providers[name] ? name : (names.find((one) => withoutSlash(providers[one]!.baseUrl) === baseUrl) ?? names[0]);
      return own === undefined ? [] : models.map((beginning): [string, string] => [beginning, own]);
    }),
  );

/** A built-in model has its own kind even if its entry does not set one. */
const withKinds = (models: Given): Given => eachOf(models, (model, name) => (builtInKind(name) ? { kind: builtInKind(name), ...(model as object) } : model));

/** Whether a provider of this kind without credentials uses those of the machine. */
const signsIn = ({ kind, credentials }: ProviderSettings, kinds: readonly ProviderKind[]): boolean =>
  !credentials && kind !== undefined && kinds.some((one) => one.kind === kind && one.takes?.includes('credentials'));

function placed(provider: ProviderSettings, folder: string, ofTheMachine: string | false | undefined): ProviderSettings {
  const { baseUrl, regions, credentials } = provider;
  const keyFile = credentials?.serviceAccountFile ?? (ofTheMachine || undefined);
  return {
    ...provider,
    baseUrl: withoutSlash(baseUrl),
    regions: regions.map((region) => (typeof region === 'string' ? region : { ...region, baseUrl: withoutSlash(region.baseUrl) })),
    ...(keyFile === undefined ? {} : { credentials: { ...credentials, serviceAccountFile: resolve(folder, keyFile) } }),
  };
}

const withoutSlash = (address: string) => address.replace(/(?<=[^/:])\/+$/, '');

const eachOf = <From, To>(all: Readonly<Record<string, From>>, change: (one: From, name: string) => To): Readonly<Record<string, To>> =>
  bare(Object.entries(all).map(([name, one]) => [name, change(one, name)]));
