import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { Fault, invalid, missing } from '#core/fault';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { optionalOrNull } from '#http/schemas';
import type { Sharing } from '../sharing.ts';
import { classificationOf, shortName } from './names.ts';
import type { Dataset, Datasets } from './store.ts';
import type { Files } from './files.ts';
import type { Begun, CopiedFile, Ingestion } from './ingestion.ts';
import type { Removal } from './removal.ts';

export interface NativeDatasetDeps {
  readonly datasets: Datasets;
  readonly files: Files;
  readonly sharing: Sharing;
  readonly removal: Removal;
  readonly ingestion: Pick<Ingestion, 'copyAll' | 'ended' | 'rollBack'>;
  readonly defaultModel: () => string;
}

const dataset = Type.String({ minLength: 1, maxLength: 400, description: 'The full name, as /server/get-datasets gives it.' });
const email = Type.String({ maxLength: 254, pattern: '^.{3}', expected: 'must be an e-mail address' });
const common = { scope: 'datasets', owner: 'caller' } as const;

const Permissions = Type.Object({
  dataset: Type.String(),
  classification: Type.String(),
  permissions: Type.String({ description: 'read, edit, admin or owner' }),
  is_tabular: Type.Boolean(),
});

export const permissionsOf = ({ fullName, classification, right, isTabular }: Dataset) => ({
  dataset: fullName,
  classification,
  permissions: right,
  is_tabular: isTabular,
});

export const nativeDatasetRoutes = (deps: NativeDatasetDeps): readonly NounRoute[] => [...ownRoutes(deps), ...permissionRoutes(deps), ...fileRoutes(deps)];

function ownRoutes({ datasets, removal, defaultModel }: NativeDatasetDeps): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/add-dataset', {
      ...common,
      summary: 'Makes a dataset of yours.',
      input: Type.Object({
        dataset: Type.String({ maxLength: 400, description: 'A short name of 4 to 99 characters.' }),
        classification: optionalOrNull(Type.String({ maxLength: 100, description: 'Unclassified or CUI; anything else is Unclassified.' })),
        is_tabular: optionalOrNull(Type.Boolean()),
      }),
      output: Type.Object({ dataset: Type.String({ description: 'The full name.' }) }),
      async answer({ caller, input }) {
        const name = shortName(input.dataset, 'dataset');
        const classification = classificationOf(name, input.classification);
        const asked = { name, classification, isTabular: input.is_tabular ?? false, model: defaultModel() };
        const { fullName } = await datasets.add(caller.userId, asked, 'dataset');
        return { dataset: fullName };
      },
    }),
    nounRoute('POST', '/user/delete-dataset', {
      ...common,
      also: [
        { method: 'POST', path: '/user/delete-datasets' },
        { method: 'DELETE', path: '/server/dataset' },
      ],
      summary: 'Deletes datasets of yours, with all that is in them.',
      input: Type.Object({
        dataset: Type.Optional(Type.Union([dataset, Type.Array(dataset, { maxItems: 1000 })])),
        datasets: Type.Optional(Type.Union([dataset, Type.Array(dataset, { maxItems: 1000 })])),
      }),
      async answer({ caller, input }) {
        const names = new Set([...[input.dataset ?? []].flat(), ...[input.datasets ?? []].flat()]);
        if (names.size === 0) throw missing('dataset', 'must be the name of a dataset');
        const ids = new Set<number>();
        for (const name of names) ids.add((await datasets.named(caller, name, 'owner')).id);
        await removal.datasets(caller, [...ids]);
      },
    }),
    nounRoute('POST', '/user/get-datasets-with-permissions', {
      ...common,
      summary: 'The datasets that you may use, and what you may do with each.',
      input: Type.Object({ check_permissions: optionalOrNull(Type.Boolean()) }),
      output: Type.Array(Permissions),
      answer: async ({ caller }) => (await datasets.all(caller)).map(permissionsOf),
    }),
    nounRoute('POST', '/server/get-datasets', {
      ...common,
      summary: 'The full names of the datasets that you may use, what others share with you first.',
      output: Type.Array(Type.String()),
      answer: async ({ caller }) => (await datasets.all(caller)).map(({ fullName }) => fullName),
    }),
    nounRoute('POST', '/server/get-dataset-info', {
      ...common,
      summary: 'A dataset that you may use.',
      input: Type.Object({ dataset }),
      output: Type.Object({ id: Type.Integer(), name: Type.String(), classification: Type.String(), is_tabular: Type.Boolean() }),
      async answer({ caller, input }) {
        const { id, fullName, classification, isTabular } = await datasets.named(caller, input.dataset);
        return { id, name: fullName, classification, is_tabular: isTabular };
      },
    }),
  ];
}

const levels = { read: 'read', edit: 'edit', write: 'edit', admin: 'admin' } as const;
const levelIn = (word: string | null | undefined) =>
  word !== undefined && word !== null && Object.hasOwn(levels, word) ? levels[word as keyof typeof levels] : 'read';

function permissionRoutes({ datasets, sharing }: NativeDatasetDeps): readonly NounRoute[] {
  const Given = Type.Object({
    dataset,
    email,
    permissions: optionalOrNull(Type.String({ maxLength: 100, description: 'read, edit or admin; write is edit, anything else read.' })),
  });
  return [
    nounRoute('POST', '/user/assign-dataset', {
      ...common,
      summary: 'Shares a dataset with another user.',
      input: Given,
      async answer({ caller, by, input }) {
        const { id } = await datasets.named(caller, input.dataset, 'admin');
        await sharing.give(id, input.email, levelIn(input.permissions), by, { isNew: true });
      },
    }),
    nounRoute('POST', '/user/update-permission-dataset', {
      ...common,
      summary: 'Says what another user may do with a dataset.',
      input: Given,
      async answer({ caller, by, input }) {
        const { id } = await datasets.named(caller, input.dataset, 'admin');
        await sharing.give(id, input.email, levelIn(input.permissions), by);
      },
    }),
    nounRoute('POST', '/user/deassign-dataset', {
      ...common,
      summary: 'Takes a dataset away from a user with whom it was shared; without an e-mail address, from yourself.',
      input: Type.Object({
        dataset,
        email: optionalOrNull(Type.String({ maxLength: 254, pattern: '^(?:|.{3,})$', expected: 'must be an e-mail address, or empty' })),
      }),
      async answer({ caller, by, input }) {
        const email = input.email || caller.email;
        const leaves = email.toLowerCase() === caller.email.toLowerCase();
        const { id } = await datasets.named(caller, input.dataset, leaves ? 'read' : 'admin');
        await sharing.take(id, email, by);
      },
    }),
  ];
}

const IngestedFile = Type.Object({
  filename: Type.String(),
  dataset: Type.String(),
  source_string: Type.String({ description: 'What /server/copy-files-dataset takes.' }),
  classification: Type.String(),
  chunk_count: Type.Integer(),
  tokens: Type.Integer(),
  bytes: Type.Integer(),
  created_at: Type.String(),
  user_id: Type.Integer(),
});

const filename = Type.String({ minLength: 1, maxLength: 1000 });

function fileRoutes({ datasets, files, removal, ingestion }: NativeDatasetDeps): readonly NounRoute[] {
  /** @throws Fault `not-found`, `conflict` for a file that cannot be copied there */
  const copyOf = async (caller: Caller, into: Dataset, asked: { readonly filename: string; readonly source_string: string }, field: string) => {
    const source = await datasets.named(caller, asked.source_string, 'read', `${field}.source_string`);
    const { id, bytes, passages } = await files.named(caller, source.id, asked.filename, 'read', `${field}.filename`);
    if (source.id === into.id) throw invalid(`${field}.source_string`, 'is the dataset itself');
    if (passages === 0) throw new Fault('conflict', `${field} cannot be copied before it is in its dataset.`, { field });
    if (source.model !== into.model)
      throw new Fault('conflict', `${field} has vectors of the model ${source.model}, and ${into.fullName} those of ${into.model}.`, { field });
    const { blob } = await files.original(caller, source.id, id);
    return { file: { id, filename: asked.filename, bytes, blob }, from: source.fullName };
  };
  /** Waits for all copies. Those that fail are rolled back; the others stay. @throws Fault the first failure */
  const allEnded = async (begun: readonly Begun[], signal: AbortSignal) => {
    const failures: unknown[] = [];
    for (const one of begun)
      await ingestion.ended(one.jobId, signal).catch(async (error: unknown) => {
        signal.throwIfAborted();
        await ingestion.rollBack(one);
        failures.push(error);
      });
    if (failures.length > 0) throw failures[0];
  };
  return [
    nounRoute('POST', '/server/get-all-files-ingested', {
      ...common,
      summary: 'The files in the datasets that you may use, at most the newest 10,000.',
      output: Type.Array(IngestedFile),
      async answer({ caller }) {
        const found = await files.ingested(caller, 10_000);
        return found.map(({ filename: name, dataset: whole, classification, passages, tokens, bytes, createdAt, userId }) => ({
          filename: name,
          dataset: whole,
          source_string: whole,
          classification,
          chunk_count: passages,
          tokens,
          bytes,
          created_at: createdAt.toISOString(),
          user_id: userId,
        }));
      },
    }),
    nounRoute('POST', '/server/delete-filename-from-dataset', {
      ...common,
      summary: 'Deletes a file from a dataset.',
      input: Type.Object({ dataset, filename }),
      async answer({ caller, input }) {
        const { id } = await datasets.named(caller, input.dataset, 'edit');
        await removal.file(caller, (await files.named(caller, id, input.filename, 'edit')).id);
      },
    }),
    nounRoute('POST', '/server/copy-files-dataset', {
      ...common,
      summary: 'Copies files from other datasets into one; nothing is read or embedded again. If one is refused, none is copied.',
      input: Type.Object({ dataset, files: Type.Array(Type.Object({ filename, source_string: dataset }), { minItems: 1, maxItems: 1000 }) }),
      output: Type.Array(Type.String({ description: 'A line for each file.' })),
      async answer({ caller, input, signal }) {
        const into = await datasets.named(caller, input.dataset, 'edit');
        const copies = new Map<string, { readonly file: CopiedFile; readonly from: string }>();
        for (const [at, one] of input.files.entries()) {
          const copy = await copyOf(caller, into, one, `files[${at}]`);
          if ((copies.get(one.filename)?.file ?? copy.file).id !== copy.file.id)
            throw invalid(`files[${at}].filename`, 'must differ from the names of the other files');
          copies.set(one.filename, copy);
        }
        const all = [...copies.values()];
        await allEnded(
          await ingestion.copyAll(
            caller,
            into,
            all.map(({ file }) => file),
          ),
          signal,
        );
        return all.map(({ file, from }) => `${file.filename} was copied from ${from}.`);
      },
    }),
  ];
}
