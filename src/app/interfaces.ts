import { chatcompat } from '#faces/chatcompat/index';
import type { StoredResponseBody } from '#faces/chatcompat/responses/stored-body';
import { gencompat } from '#faces/gencompat/index';
import { mcp } from '#faces/mcp/index';
import type { Sources } from '#faces/mcp/offers';
import { messages } from '#faces/messages/index';
import { admin, mine } from '#faces/plain/index';
import type { ModelsOf } from '#faces/model-list';
import { native } from '#faces/native/index';
import { examples } from '#faces/monitoring/examples';
import { monitoring, type OpenApiDocument } from '#faces/monitoring/index';
import type { Settings } from '#config/index';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { openApi } from '#http/openapi';
import { isOwnAddress } from '#http/own-address';
import type { Face } from '#http/route';
import type { Clock } from '#kit/async/clock';
import { memoryOf, type ByteBudget } from '#kit/memory/byte-budget';
import { nativeKeyRoutes } from '#resources/api-keys/native-routes';
import type { Rights } from '#resources/api-keys/rights';
import { ownKeyRoutes } from '#resources/api-keys/routes';
import { audit } from '#resources/audit/store';
import { loginRoutes } from '#resources/logins/routes';
import { mineRoutes, nativeUserRoutes } from '#resources/mine/routes';
import { sessionRoutes } from '#resources/mine/session-routes';
import { ofSomebody } from '#resources/owner';
import type { Keeping } from '#resources/stored-responses/index';
import { openCounters } from '#resources/usage/counters';
import { counterRoutes } from '#resources/usage/native-routes';
import { promptLogRoutes } from '#resources/prompt-log/routes';
import type { PromptStore } from '#resources/prompt-log/store';
import { signingKeyRoutes, tokenRoutes } from '#resources/tokens/routes';
import { passwordRoutes, type PasswordRoutesDeps } from '#resources/users/password-routes';
import { nativeAdminRoutes } from '#resources/users/native-routes';
import { openUsers } from '#resources/users/store';
import { openRunningStreams } from '#resources/usage/running-streams';
import { usedRoom } from '#store/blob-rows';
import { examine } from '#store/examine';
import type { Store } from '#store/open';
import type { Metrics } from '#telemetry/metrics';
import type { Acting } from './acting.ts';
import type { Accounting } from './accounting.ts';
import type { Administration } from './administration.ts';
import type { Calls } from './calls.ts';
import { blobColumns, missingOf } from './database.ts';
import { doctorRoutes, regionRoutes } from './diagnostics/routes.ts';
import type { Knowledge } from './knowledge.ts';
import type { Parent } from './parent.ts';
import { signingIn, type People } from './signing-in.ts';
import { version } from './version.ts';

export interface InterfacesDeps {
  readonly calls: Calls;
  readonly keeping: Keeping<StoredResponseBody>;
  readonly rights: Rights;
  readonly administration: Pick<Administration, 'routes' | 'own' | 'keys' | 'lessons' | 'holders' | 'plans' | 'planOf' | 'teamPlan'>;
  readonly people: People;
  readonly prompts: PromptStore;
  readonly knowledge: Pick<Knowledge, 'datasetsOf' | 'native' | 'own' | 'admin' | 'offers'>;
  readonly acting: Pick<Acting, 'native' | 'own' | 'offered' | 'signedIn'>;
  readonly journal: Accounting['journal'];
  readonly metrics: Metrics;
  readonly budget: ByteBudget;
  readonly store: Store;
  readonly clock: Clock;
  readonly parent: Parent | undefined;
  readonly isStopping: () => boolean;
}

/** All client-facing APIs. The last one answers for every unknown address. */
export function interfaces(deps: InterfacesDeps): readonly Face[] {
  const { calls, keeping, rights, administration, people, prompts, knowledge, acting, journal, metrics, budget, store, clock, parent, isStopping } = deps;
  const { pipeline, models, regions, resetRegions } = calls;
  const settings = () => calls.runtime().settings;
  const answering = { clock, models, limits: () => settings().limits };
  const vectors = { embed: pipeline.embed, embeddingBalance: () => settings().charge.embeddings };
  const document = perRuntime(calls.runtime, (): OpenApiDocument => openApi(faces, { version, server: settings().publicUrl || '/', examples }));
  const faces: readonly Face[] = [
    chatcompat({
      ...keeping,
      ...answering,
      ...vectors,
      rights,
      memoryOf: (userId) => memoryOf(budget, userId),
      affords: pipeline.affords,
      count: pipeline.count,
      storing: () => settings().responses.store,
      generate: pipeline.chatcompat,
      sendRaw: pipeline.sendRaw,
      speak: pipeline.speak,
      defaultSpeech: () => settings().defaults.speech,
    }),
    messages({ ...answering, generate: pipeline.messages, count: pipeline.count }),
    gencompat({ ...answering, ...vectors, generate: pipeline.gencompat, count: pipeline.count, standIns: () => calls.runtime().standIns }),
    admin([
      ...administration.routes,
      ...knowledge.admin,
      ...regionRoutes(parent ?? { regions, resetRegions }, (by) => audit(store, { by, action: 'regions.reset', target: { kind: 'regions', id: null } })),
      ...doctorRoutes({
        settings,
        clock,
        database: () => examine(store.db, clock),
        providers: () => calls.runtime().providers,
        upstreams: calls.upstreams,
        regions: (parent ?? { regions }).regions,
        lessons: () => administration.lessons.list(),
        lostHolders: () => administration.holders.lost(),
        missingPlans: () => administration.plans.missing(),
      }),
    ]),
    mcp({ ...offersOf(knowledge, acting), version, limits: answering.limits, isOwn: (host, origin) => isOwnAddress({ host, origin }, settings()) }),
    ...users({
      ...answering,
      store,
      administration,
      people,
      prompts,
      knowledge,
      acting,
      settings,
      modelName: (name) => calls.runtime().models.find(name)?.name,
    }),
    monitoring({
      clock,
      metrics: parent ? { contentType: metrics.contentType, text: () => parent.metrics() } : metrics,
      document,
      landing: () => ({ version, hasProvider: Object.keys(settings().providers).length > 0, publicUrl: settings().publicUrl }),
      missing: () => missingFrom({ store, journal, parent, isStopping }),
    }),
  ];
  return faces;
}

/** What this process, and the machine that it belongs to, lack to take requests. */
async function missingFrom({
  store,
  journal,
  parent,
  isStopping,
}: Pick<InterfacesDeps, 'store' | 'journal' | 'parent' | 'isStopping'>): Promise<readonly string[]> {
  const [database, machine] = await Promise.all([missingOf(store), parent?.missing() ?? []]);
  return [...new Set([...database, ...(journal.trouble ? ['disk'] : []), ...(isStopping() ? ['stopping'] : []), ...machine])];
}

/** What clients of MCP are offered, tools of the first sources first in their list; and where sign-ins at the servers of users end. */
const offersOf = ({ offers }: Pick<Knowledge, 'offers'>, { offered, signedIn }: Pick<Acting, 'offered' | 'signedIn'>): Sources & Pick<Acting, 'signedIn'> => ({
  ...offers,
  tools: [...offers.tools, offered],
  signedIn,
});

/** What users have of their own: the native interface, and plain REST. */
function users(
  deps: Pick<InterfacesDeps, 'store' | 'administration' | 'people' | 'prompts' | 'knowledge' | 'acting' | 'clock'> & {
    models: ModelsOf;
    settings: () => Settings;
    modelName: (name: string) => string | undefined;
    limits: () => Settings['limits'];
  },
): readonly Face[] {
  const { own: administered, keys, planOf, teamPlan } = deps.administration;
  const { store, people, prompts, knowledge, acting, models, settings, modelName, clock, limits: ofRequests } = deps;
  const { passwords, tokens, logins } = people;
  const limits = { limitsOf: planOf, teamLimits: teamPlan };
  const own = {
    ...limits,
    store,
    datasetsOf: knowledge.datasetsOf,
    usedRoom: (userId: number) => usedRoom(store, blobColumns, userId),
    runningStreams: openRunningStreams(store, clock),
    modelName,
    modelNames: (caller: Caller) =>
      models(caller)
        .list()
        .map(({ name }) => name),
  };
  const isRight: PasswordRoutesDeps['isRight'] = ({ email, address }, password) =>
    logins
      .letIn({ account: email.toLowerCase(), address, by: 'password', isIn: true }, () => tokens.judgePassword(email.toLowerCase(), password, address))
      .then(() => true, isWrong);
  return [
    mine(
      ofSomebody(
        [
          ...administered,
          ...mineRoutes(own),
          ...sessionRoutes({ ...own, ...signingIn({ people, store, settings }) }),
          ...knowledge.own,
          ...acting.own,
          ...ownKeyRoutes(keys),
          ...passwordRoutes({ store, audit, passwords, isRight }),
          ...signingKeyRoutes(tokens),
        ],
        async (id) => (await openUsers(store).find(id)) !== undefined,
      ),
    ),
    native(
      [
        ...tokenRoutes({ tokens, letIn: logins.letIn }),
        ...nativeKeyRoutes(keys),
        ...loginRoutes(logins),
        ...promptLogRoutes(prompts, (look) => audit(store, look)),
        ...nativeUserRoutes(own),
        ...counterRoutes(openCounters({ store, planOf, teamPlan })),
        ...nativeAdminRoutes({ ...limits, store, audit }),
        ...knowledge.native,
        ...acting.native,
      ],
      { compat: () => settings().compat, clock, limits: ofRequests },
    ),
  ];
}

function isWrong(error: unknown): false {
  if (error instanceof Fault && error.code === 'unauthenticated') return false;
  throw error;
}

/** Made once for each runtime, when it is asked for. */
export function perRuntime<Made>(runtime: () => object, make: () => Made): () => Made {
  let last: { readonly of: object; readonly made: Made } | undefined;
  return () => (last?.of === runtime() ? last : (last = { of: runtime(), made: make() })).made;
}
