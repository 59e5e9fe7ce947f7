import { Type, type Static } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable } from '#http/schemas';
import type { Audit } from '#store/auditing';
import type { Store } from '#store/open';
import { ownQuery, ownThingRoutes } from '../own-things.ts';
import { ownerQuery, readerOf } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery, pageSchema } from '../pagination.ts';
import type { Sharing } from '../sharing.ts';
import { AgentFields, definitionOf, type AgentChecks } from './definition.ts';
import { kind, mostAgents, type AgentStore } from './store.ts';
import type { AgentDefinition, AgentVersion, OwnAgent } from './types.ts';

const Shown = Type.Object({
  ...AgentFields.properties,
  instructions: Type.Optional(AgentFields.properties.instructions),
  description: Type.String(),
  id: Type.Integer(),
  uuid: Type.String(),
  version: Type.Integer({ description: 'The one that is shown, and that you run.' }),
  published: nullable(Type.Integer({ description: 'The version that others run.' })),
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], {
    description: 'What the caller may do with it. Who may only use it does not see its instructions, model and tools.',
  }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const Version = Type.Object({
  ...AgentFields.properties,
  version: Type.Integer(),
  publishedAt: nullable(Type.String()),
  createdAt: Type.String(),
});

export interface AgentRoutesDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly agents: AgentStore;
  readonly sharing: Sharing;
  readonly checks: AgentChecks;
}

const root = '/server/mine/agents';
const common = { scope: 'agent_builder', owner: 'caller', output: Shown } as const;
const query = ownQuery;
const pages = closed({ ...ownerQuery, ...pageQuery });

/** A user's own agents. */
export function agentRoutes(deps: AgentRoutesDeps): readonly NounRoute[] {
  const { agents, sharing, checks } = deps;
  const noted = noting(deps);
  const own = ownThingRoutes({
    noun: 'agents',
    what: 'agent',
    scope: 'agent_builder',
    input: AgentFields,
    output: Shown,
    summaries: {
      list: 'Lists your agents, and those shared with you.',
      make: `Makes an agent of yours; at most ${mostAgents}.`,
      one: 'One of your agents.',
      replace: 'Makes a new version of one of your agents. Its owner runs the last version, everybody else the one that was published.',
      remove: 'Deletes one of your agents.',
    },
    shown,
    rows: agents,
    async make(fields, { caller, owner, by }) {
      const made = await agents.add(owner, await definitionOf(fields, asOwner(caller, { owner }), checks), authorOf(by, owner));
      await noted('agent.make', by, made.id, undefined, made.definition);
      return made;
    },
    async replace(id, fields, { caller, reader, owner, by }) {
      const before = await agents.one(reader, id);
      const changed = await agents.change(reader, id, await definitionOf(fields, asOwner(caller, { owner }), checks, id), authorOf(by, before.owner));
      await noted('agent.change', by, id, before.definition, changed.definition);
      return changed;
    },
    async remove(id, { reader, by }) {
      const gone = await agents.remove(reader, id);
      await noted('agent.delete', by, gone.id, gone.definition, undefined);
      return gone;
    },
    sharing,
  });
  return [...own, ...versionRoutes(deps, noted)];
}

function versionRoutes({ agents }: Pick<AgentRoutesDeps, 'agents'>, noted: Noted): readonly NounRoute[] {
  return [
    nounRoute('GET', `${root}/:id/versions`, {
      ...common,
      summary: 'The versions of one of your agents, the newest first.',
      query: pages,
      output: pageSchema(Version),
      async answer({ caller, params, query: { limit = 50, cursor, ...whose } }) {
        const asked = { before: idBefore('agent-versions', cursor), limit: limit + 1 };
        const found = await agents.versions(readerOf(caller, whose), idIn(params, 'id', 'agent'), asked);
        return pageOf(found.map(versionShown), limit, ({ version }) => cursorOf('agent-versions', [version]));
      },
    }),
    nounRoute('GET', `${root}/:id/versions/:version`, {
      ...common,
      summary: 'One version of one of your agents.',
      query,
      output: Version,
      answer: async ({ caller, params, query: whose }) =>
        versionShown(await agents.version(readerOf(caller, whose), idIn(params, 'id', 'agent'), numberIn(params))),
    }),
    nounRoute('POST', `${root}/:id/publish`, {
      ...common,
      summary: 'Publishes a version of one of your agents: those whom it is shared with run it from now on.',
      query,
      input: closed({ version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Absent: the last one.' })) }),
      inputMayBeLeftOut: true,
      output: Version,
      async answer({ caller, by, params, query: whose, input: { version } }) {
        const id = idIn(params, 'id', 'agent');
        const published = await agents.publish(readerOf(caller, whose), id, version);
        await noted('agent.publish', by, id, undefined, { version: published.version });
        return versionShown(published);
      },
    }),
  ];
}

type Noted = (action: `agent.${string}`, by: Actor, id: number, before: object | undefined, after: object | undefined) => Promise<void>;

/** Writes what was changed into the audit trail, without what the agent is told. */
function noting({ store, audit }: Pick<AgentRoutesDeps, 'store' | 'audit'>): Noted {
  const told = (one: object | undefined) => {
    if (!one || !('instructions' in one)) return one;
    const { name, mode, model, tools, limits } = one as AgentDefinition;
    return { name, mode, ...(model ? { model } : {}), tools: tools.map(({ type }) => type), ...(limits ? { limits } : {}) };
  };
  return (action, by, id, before, after) => audit(store, { by, action, target: { kind, id }, before: told(before), after: told(after) });
}

/** Who holds the server's own credential writes for the owner. */
const authorOf = ({ userId }: Pick<Actor, 'userId'>, owner: number): number => (userId === 0 ? owner : userId);

/** Whose things an agent may name. */
function asOwner(caller: Caller, whose: { readonly owner?: number | undefined }): Caller {
  const reader = readerOf(caller, whose);
  if (reader.userId === caller.userId) return caller;
  return { ...caller, ...reader };
}

function numberIn(params: Readonly<Record<string, string>>): number {
  const version = idIn(params, 'version', 'version');
  if (version > 2_147_483_647) throw unknownThing('version');
  return version;
}

function shown({ id, uuid, version, published, owner, right, definition, createdAt, updatedAt }: OwnAgent): Static<typeof Shown> {
  const { name, description, mode, variables, ...hidden } = fieldsOf(definition);
  const what = right === 'read' ? {} : hidden;
  const more = { version, published, owner, right, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
  return { id, uuid, name, description, mode, ...what, ...(variables ? { variables } : {}), ...more };
}

const versionShown = ({ version, definition, createdAt, publishedAt }: AgentVersion): Static<typeof Version> => ({
  version,
  ...fieldsOf(definition),
  publishedAt: publishedAt?.toISOString() ?? null,
  createdAt: createdAt.toISOString(),
});

/** As its author wrote it. */
const fieldsOf = (definition: AgentDefinition) => definition as AgentFields & { readonly description: string };
