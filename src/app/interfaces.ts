import { admin } from '#faces/admin/index';
import { chatcompat } from '#faces/chatcompat/index';
import type { StoredResponseBody } from '#faces/chatcompat/responses/stored-body';
import { gencompat } from '#faces/gencompat/index';
import { messages } from '#faces/messages/index';
import { watch, type OpenApiDocument } from '#faces/monitoring/index';
import { openApi } from '#http/openapi';
import type { Face } from '#http/route';
import type { Clock } from '#kit/async/clock';
import { memoryOf, type ByteBudget } from '#kit/memory/byte-budget';
import type { Rights } from '#resources/api-keys/rights';
import { audit } from '#resources/audit/store';
import type { Keeping } from '#resources/stored-responses/index';
import { examine } from '#store/examine';
import type { Store } from '#store/open';
import type { Metrics } from '#telemetry/metrics';
import type { Administration } from './administration.ts';
import type { Calls } from './calls.ts';
import { isReady } from './database.ts';
import { doctorRoutes } from './diagnostics/routes.ts';
import { regionRoutes } from './diagnostics/region-routes.ts';
import type { Parent } from './parent.ts';
import { version } from './version.ts';

export interface InterfacesDeps {
  readonly calls: Calls;
  readonly keeping: Keeping<StoredResponseBody>;
  readonly rights: Rights;
  readonly administration: Pick<Administration, 'routes' | 'lessons'>;
  readonly metrics: Metrics;
  readonly budget: ByteBudget;
  readonly store: Store;
  readonly clock: Clock;
  readonly parent: Parent | undefined;
  /** The address under which it listens. */
  readonly url: () => string;
  readonly isStopping: () => boolean;
}

/** All client-facing APIs. The last one answers for every unknown address. */
export function interfaces({
  calls,
  keeping,
  rights,
  administration,
  metrics,
  budget,
  store,
  clock,
  parent,
  url,
  isStopping,
}: InterfacesDeps): readonly Face[] {
  const { pipeline, models, regions, resetRegions } = calls;
  const settings = () => calls.runtime().settings;
  const answering = { clock, models, limits: () => settings().limits };
  const vectors = { embed: pipeline.embed, embeddingBalance: () => settings().charge.embeddings };
  const document = perRuntime(calls.runtime, (): OpenApiDocument => openApi(faces, { version, server: settings().publicUrl || url() }));
  const faces: readonly Face[] = [
    chatcompat({
      ...keeping,
      ...answering,
      ...vectors,
      rights,
      memoryOf: (userId) => memoryOf(budget, userId),
      affords: pipeline.affords,
      storing: () => settings().responses.store,
      generate: pipeline.chatcompat,
      sendRaw: pipeline.sendRaw,
    }),
    messages({ ...answering, generate: pipeline.messages, count: pipeline.count }),
    gencompat({ ...answering, ...vectors, generate: pipeline.gencompat, count: pipeline.count, standIns: () => calls.runtime().standIns }),
    admin([
      ...administration.routes,
      ...regionRoutes(parent ?? { regions, resetRegions }, (by) => audit(store, { by, action: 'regions.reset', target: { kind: 'regions', id: null } })),
      ...doctorRoutes({
        settings,
        clock,
        database: () => examine(store.db, clock),
        providers: () => calls.runtime().providers,
        regions: (parent ?? { regions }).regions,
        lessons: () => administration.lessons.list(),
      }),
    ]),
    watch({
      clock,
      metrics: parent ? { contentType: metrics.contentType, text: () => parent.metrics() } : metrics,
      document,
      missing: async () => {
        const [database, machine] = await Promise.all([isReady(store), parent?.missing() ?? []]);
        return [...new Set([...(database ? [] : ['database']), ...(isStopping() ? ['stopping'] : []), ...machine])];
      },
    }),
  ];
  return faces;
}

/** Made once for each runtime, when it is asked for. */
function perRuntime<Made>(runtime: () => object, make: () => Made): () => Made {
  let last: { readonly of: object; readonly made: Made } | undefined;
  return () => (last?.of === runtime() ? last : (last = { of: runtime(), made: make() })).made;
}
