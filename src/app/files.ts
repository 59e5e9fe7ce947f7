import { join } from 'node:path';
import { EnvHttpProxyAgent } from 'undici';
import type { Settings } from '#config/index';
import type { Caller } from '#core/context';
import type { ConvertDocument } from '#core/document';
import { Fault } from '#core/fault';
import type { Plan } from '#core/plan';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { openDocuments } from '#kit/documents/index';
import { convertDocument } from '#resources/files/convert';
import { fileRoutes } from '#resources/files/native-routes';
import { requireRoom, sweepBlobs, usedRoom, type BlobColumn, type Room } from '#store/blob-rows';
import { folderBlobs, type Blobs } from '#store/blobs';
import { placeOf, type Place } from '#store/job-places';
import type { StoreLog } from '#store/log';
import type { Access, Store } from '#store/open';
import { s3Blobs } from '#store/s3-blobs';
import { busyCores } from './cores.ts';
import { outwardOf } from './upstreams.ts';

/** Files that users send. */
export interface Files {
  readonly convert: ConvertDocument;
  /** Where originals are kept: the bucket, else the data folder. */
  readonly blobs: Blobs;
  /** Where this machine keeps originals that others lack; absent where all have them. */
  readonly place: Place | undefined;
  readonly native: readonly NounRoute[];
  /** May the caller keep this file too? In the transaction that writes its row. @throws Fault `too-large` */
  room(inside: Access, caller: Caller, file: { readonly blob: string; readonly bytes: number }): Promise<void>;
  /** What there is room for now; undefined: there is no limit. */
  roomOf(caller: Caller): Promise<Room | undefined>;
  close(): void;
}

export interface FilesDeps {
  /** Those of the start. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly store: Store;
  readonly columns: readonly BlobColumn[];
  readonly planOf: (caller: Caller) => Plan | undefined;
  readonly log: StoreLog;
}

export async function openFiles({ settings, clock, store, columns, planOf, log }: FilesDeps): Promise<Files> {
  const documents = openDocuments({ clock, size: busyCores(settings) });
  const convert = convertDocument(documents);
  const kept = await blobsOf(settings, clock);
  const place = settings.databaseUrl === undefined || settings.blobs.s3.endpoint !== '' ? undefined : await placeOf(blobFolder(settings));
  const blobs = place ? ofOneMachine(kept) : kept;
  const endSweep = sweepBlobs({ blobs, store, columns, clock, log });
  return {
    convert,
    blobs,
    place,
    native: fileRoutes({ convert }),
    room: (inside, caller, file) => requireRoom(inside, columns, { ...file, userId: caller.userId, most: planOf(caller)?.storageBytes }),
    async roomOf(caller) {
      const most = planOf(caller)?.storageBytes;
      return most === undefined ? undefined : { most, used: await usedRoom(store, columns, caller.userId) };
    },
    close() {
      endSweep();
      documents.close();
    },
  };
}

const blobFolder = ({ data }: Settings) => join(data, 'blobs');

/** Says of a file that is not here where it may be. */
function ofOneMachine(blobs: Blobs): Blobs {
  return {
    ...blobs,
    get: (id) =>
      blobs.get(id).catch((error: unknown) => {
        if (!(error instanceof Fault) || error.code !== 'not-found') throw error;
        throw new Fault('not-found', 'The original is kept on another machine: machines share originals where blobs.s3 names a bucket.', { cause: error });
      }),
  };
}

function blobsOf(settings: Settings, clock: Clock): Promise<Blobs> {
  const folder = blobFolder(settings);
  const { s3 } = settings.blobs;
  if (s3.endpoint === '') return folderBlobs(folder, clock);
  const { proxy, noProxy, secureContext } = outwardOf(settings);
  const tls = secureContext ? { connect: { secureContext }, requestTls: { secureContext } } : {};
  return s3Blobs(s3, { folder, clock, dispatcher: new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy, ...tls }) });
}
