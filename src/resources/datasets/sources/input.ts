import { isAbsolute, normalize } from 'node:path';
import { Type, type Static } from 'typebox';
import { closed, optionalOrNull } from '#http/schemas';
import type { Caller } from '#core/context';
import { Fault, invalid, missing } from '#core/fault';
import { isAdministrator } from '../../owner.ts';
import { multiline } from '../../text-fields.ts';
import { isWithin, openFolder } from './folder.ts';
import { onlyAdministrators } from './synchronising.ts';
import { SourceAway, type BucketKeys, type SourceLocation } from './types.ts';
import { longestUrl } from './visiting.ts';

const types = ['page', 'sitemap', 'site', 'bucket', 'folder'] as const;

const BucketText = closed({
  endpoint: Type.String({ minLength: 1, maxLength: longestUrl, description: 'The URL of an S3-compatible service.' }),
  region: Type.Optional(Type.String({ maxLength: 100, pattern: '^[A-Za-z0-9-]*$', expected: 'must be letters, digits and hyphens' })),
  bucket: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$', expected: 'must be the name of a bucket' }),
  prefix: Type.Optional(
    Type.String({
      maxLength: 1024,
      ...multiline,
      description: 'Only objects whose keys begin with it.',
    }),
  ),
  accessKeyId: Type.String({ minLength: 1, maxLength: 1000, writeOnly: true, description: 'May hold `{{secret.NAME}}`. Is never given back.' }),
  secretAccessKey: Type.String({ minLength: 1, maxLength: 1000, writeOnly: true, description: 'May hold `{{secret.NAME}}`. Is never given back.' }),
});

const everyHours = optionalOrNull(Type.Integer({ minimum: 1, maximum: 8760 }), { description: 'How often it is synchronised; null: on demand alone.' });

const where = {
  url: Type.Optional(Type.String({ minLength: 1, maxLength: longestUrl, description: 'Of a page, a sitemap or a site.' })),
  bucket: Type.Optional(BucketText),
  folder: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description: 'For administrators: an absolute path within one of sources.folders.' })),
};

export const NewSource = closed({ type: Type.Enum([...types]), ...where, everyHours });

export const ChangedSource = closed({ type: Type.Optional(Type.Enum([...types])), ...where, everyHours });

type Where = Pick<Static<typeof NewSource>, keyof typeof where>;

/** What a source is to follow, and the keys of a bucket. */
export interface GivenPlace {
  readonly place: SourceLocation;
  readonly keys: BucketKeys | undefined;
}

export interface PlaceDeps {
  readonly folders: () => readonly string[];
  /** For whom the source works. */
  readonly caller: Caller;
}

/** @throws Fault `invalid` naming the field, `forbidden` for a folder */
export async function placeIn(type: SourceLocation['type'], given: Where, { folders, caller }: PlaceDeps): Promise<GivenPlace> {
  const wanted = type === 'bucket' || type === 'folder' ? type : 'url';
  for (const member of ['url', 'bucket', 'folder'] as const)
    if (member !== wanted && given[member] !== undefined) throw invalid(member, `is not for sources of the type ${type}`);
  const { url, bucket, folder } = given;
  if (given[wanted] === undefined) throw missing(wanted, `is required for sources of the type ${type}`);
  if (type === 'bucket') {
    const { accessKeyId, secretAccessKey, region = '', prefix = '', ...rest } = bucket!;
    const endpoint = addressIn(rest.endpoint, 'bucket.endpoint');
    if (endpoint.search !== '') throw invalid('bucket.endpoint', 'must have no query');
    return { place: { type, bucket: { endpoint: endpoint.href, region, bucket: rest.bucket, prefix } }, keys: { accessKeyId, secretAccessKey } };
  }
  if (type === 'folder') return { place: { type, folder: await folderIn(folder!, folders(), caller) }, keys: undefined };
  return { place: { type, url: addressIn(url!, 'url').href }, keys: undefined };
}

function addressIn(text: string, field: string): URL {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.href.length > longestUrl)
    throw invalid(field, 'must be an http or https address without user name and password');
  url.hash = '';
  return url;
}

/** Whether a folder is there is said only of those that the operator lists. */
async function folderIn(text: string, listed: readonly string[], caller: Caller): Promise<string> {
  if (!isAdministrator(caller)) throw onlyAdministrators();
  const refused = (message: string) => new Fault('invalid', message, { field: 'folder' });
  const folder = text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text;
  if (!isAbsolute(folder) || normalize(folder) !== folder || folder.includes('\u0000'))
    throw refused('folder must be an absolute path without . and .. in it.');
  if (!listed.some((root) => isWithin(normalize(root), folder))) throw refused('folder must lie within one of sources.folders in the settings.');
  await openFolder(folder, listed).catch((error: unknown) => {
    throw error instanceof SourceAway ? refused(`folder cannot be followed: ${error.message}`) : error;
  });
  return folder;
}
