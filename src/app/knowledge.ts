import type { Caller } from '#core/context';
import type { ConvertDocument } from '#core/document';
import type { Settings } from '#config/index';
import type { Sources } from '#faces/mcp/offers';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { openPersonas } from '#resources/personas/store';
import { searchRoutes, searchTool } from '#resources/datasets/search/index';
import type { Log } from '#telemetry/log';
import type { Administration } from './administration.ts';
import type { Calls } from './calls.ts';
import { blobColumns, type Database } from './database.ts';
import { openDatasetSearch } from './dataset-search.ts';
import { openKnownDatasets, type DatasetsDeps } from './datasets.ts';
import { openFiles } from './files.ts';
import { openKnowledgeQuery, type KnowledgeQueryDeps } from './knowledge-query.ts';

export interface KnowledgeDeps {
  readonly database: Database;
  /** Those that the server started with. */
  readonly first: Settings;
  readonly settings: () => Settings;
  readonly calls: Calls;
  readonly acting: KnowledgeQueryDeps['acting'] & Pick<DatasetsDeps, 'resolve'> & { readonly followed: DatasetsDeps['streams'] };
  /** Replaces what makes text of documents. */
  readonly convert: ConvertDocument | undefined;
  readonly rights: DatasetsDeps['rights'];
  /** The memory of requests and of runs. */
  readonly budget: KnowledgeQueryDeps['budget'];
  readonly uploads: DatasetsDeps['uploads'];
  readonly planOf: Administration['planOf'];
  readonly clock: Clock;
  readonly log: Log;
}

/** Files, datasets, and what users ask about them. */
export interface Knowledge {
  /** The datasets that somebody may use, in the words of the native interface. */
  readonly datasetsOf: (caller: Caller) => Promise<readonly object[]>;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  readonly admin: readonly NounRoute[];
  /** What clients of MCP are offered of it. */
  readonly offers: Sources;
  close(): Promise<void>;
}

export async function openKnowledge(deps: KnowledgeDeps): Promise<Knowledge> {
  const { database, first, settings, calls, acting, convert: replaced, rights, budget, planOf, uploads, clock, log } = deps;
  const { store, seal } = database;
  const { resolve, followed: streams } = acting;
  const files = await openFiles({ settings: first, clock, store, columns: blobColumns, planOf, log });
  const convert = replaced ?? files.convert;
  const found = openDatasetSearch({ store, calls, clock, log });
  const personas = openPersonas(store);
  const { citers } = personas;
  const known = { store, seal, clock, settings, calls, rights, search: found, convert, files, uploads, streams, resolve, citers, log };
  const datasets = openKnownDatasets(known);
  const queries = openKnowledgeQuery({
    database,
    calls,
    personas,
    acting,
    search: found.search,
    dataset: (caller, id) => datasets.datasets.one(caller, id),
    convert,
    allowed: first.outbound.allow,
    rights,
    budget,
    clock,
    log,
  });
  return {
    datasetsOf: datasets.permitted,
    native: [...files.native, ...datasets.native, ...searchRoutes(found.search), ...queries.native],
    own: [...datasets.own, ...queries.own],
    admin: queries.admin,
    offers: { enters: calls.pipeline.enters, tools: [searchTool(found.search), ...queries.tools], prompts: queries.prompts, files: datasets.texts },
    close: () => runAll([() => queries.close(), () => datasets.close(), () => found.close(), () => files.close()]),
  };
}
