import type { ProviderKind } from '#core/provider-kind';
import type { Settings } from '../schema/index.ts';
import { addresses } from './addresses.ts';
import { cache, guard } from './guard.ts';
import { hint, kindNamed, models, namedModel } from './models.ts';
import { ownAddress } from './own-address.ts';
import { providers } from './providers.ts';
import type { Trouble } from './trouble.ts';
import { isAbsolute, normalize, parse } from 'node:path';

/** The problems of settings that conform to the schema but are inconsistent or meaningless. */
export function* troubles(settings: Settings, kinds: readonly ProviderKind[]): Iterable<Trouble> {
  for (const ask of [processes, identity, addresses, providers, ownAddress, models, plans, routing, cache, guard, mcp, sources]) yield* ask(settings, kinds);
}

function* routing({ routing }: Settings): Iterable<Trouble> {
  if (routing.cooldownMaxSeconds < routing.cooldownSeconds) yield { path: ['routing', 'cooldownMaxSeconds'], text: 'must be at least cooldownSeconds.' };
}

function* sources({ sources: { folders } }: Settings): Iterable<Trouble> {
  for (const [at, folder] of folders.entries()) {
    const path = ['sources', 'folders', at];
    if (!isAbsolute(folder) || normalize(`${folder}/`) !== `${folder.replace(/\/$/, '')}/`)
      yield { path, text: 'must be an absolute path without . and .. in it.' };
    else if (parse(folder).root === folder) yield { path, text: 'must not be the root of the file system.' };
  }
}

function* mcp({ mcp: { whitelist, stdio } }: Settings): Iterable<Trouble> {
  const names = new Set<string>();
  for (const [member, servers] of Object.entries({ whitelist, stdio }))
    for (const [at, { name }] of servers.entries()) {
      if (names.has(name)) yield { path: ['mcp', member, at], silent: true, text: `has the same name as another server: ${name}.` };
      names.add(name);
    }
  for (const [at, { command }] of stdio.entries()) if (!isAbsolute(command)) yield { path: ['mcp', 'stdio', at, 'command'], text: 'must be an absolute path.' };
}

const domain = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

function* plans({ plans, newUsers, providers, models: all }: Settings): Iterable<Trouble> {
  const lists = new Set(Object.values(providers).flatMap(({ residency }) => Object.keys(residency)));
  const named = new Map(Object.entries(all).flatMap(([model, { aliases }]) => aliases.map((alias) => [alias, model] as const)));
  for (const [name, { residency, models = [], modelLimits = {} }] of Object.entries(plans)) {
    const path = ['plans', name];
    const limited = new Map<string, string>();
    for (const given of Object.keys(modelLimits)) {
      const model = named.get(given) ?? given;
      const other = limited.get(model);
      if (other !== undefined)
        yield {
          path: [...path, 'modelLimits', given],
          silent: true,
          text: `limits the same model as ${other}: a model has one entry, by its name or an alias.`,
        };
      limited.set(model, given);
    }
    if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name))
      yield { path, name: true, silent: true, text: 'must have a name of at most 64 letters, digits, ".", "_" and "-".' };
    if (residency !== undefined && !lists.has(residency))
      yield { path: [...path, 'residency'], text: 'must name a residency list of a provider.', dependsOn: [['providers']] };
    for (const [at, one] of models.entries())
      if (one !== '*') yield* unnamed(one, { path: [...path, 'models', at], text: 'must name a model, or be "*" for all.' }, all);
    for (const one of Object.keys(modelLimits)) yield* unnamed(one, { path: [...path, 'modelLimits', one], text: 'must name one model.', name: true }, all);
  }
  if (newUsers.plan !== 'unlimited' && !plans[newUsers.plan])
    yield { path: ['newUsers', 'plan'], text: 'must name a plan, or unlimited.', dependsOn: [['plans', newUsers.plan]] };
  for (const [at, one] of newUsers.domains.entries())
    if (!domain.test(one)) yield { path: ['newUsers', 'domains', at], text: 'must be a domain such as example.org.' };
}

/** A limit of a model whose name is mistyped would silently not hold. */
function* unnamed(name: string, trouble: Trouble, all: Settings['models']): Iterable<Trouble> {
  if (kindNamed(name, all) === undefined)
    yield {
      ...trouble,
      text:
        trouble.text +
        hint(
          name,
          Object.keys(all).filter((one) => one !== '*'),
        ),
      dependsOn: namedModel(name, all),
    };
}

const email = /^[^\s@]{1,64}@[^\s@]{1,189}$/;

/** Settings of the environment alone: the first user and the master key; and the host. */
function* identity({ masterKey, adminEmail, adminApiKey, host }: Settings): Iterable<Trouble> {
  if (masterKey !== undefined && !/^[A-Za-z0-9+/]{43}=$/.test(masterKey)) yield { path: ['masterKey'], text: 'must be 32 bytes in base64 (44 characters).' };
  if (adminEmail !== undefined && !email.test(adminEmail)) yield { path: ['adminEmail'], text: 'must be an e-mail address.' };
  if (adminApiKey !== undefined && !/^[A-Za-z0-9_-]{64}$/.test(adminApiKey)) yield { path: ['adminApiKey'], text: 'must be 64 characters of [A-Za-z0-9_-].' };
  if (/[\s/@[\]]/.test(host)) yield { path: ['host'], text: 'must be an address or a host name, such as 127.0.0.1.' };
}

function* processes({ workers, databaseUrl }: Settings): Iterable<Trouble> {
  if (workers > 1 && databaseUrl === undefined)
    yield { path: ['workers'], text: 'must be 1 unless DATABASE_URL names a PostgreSQL server.', dependsOn: [['databaseUrl']] };
}
