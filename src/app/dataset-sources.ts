import type { NounRoute } from '#http/noun-route';
import type { Sealer } from '#kit/crypto/sealing';
import type { Removal } from '#resources/datasets/removal';
import { sourceRoutes, type SourceRoutesDeps } from '#resources/datasets/sources/routes';
import { openSchedule, workOnSchedule } from '#resources/datasets/sources/schedule';
import { openSources } from '#resources/datasets/sources/store';
import { workOnSources, type SynchronisingDeps } from '#resources/datasets/sources/synchronising';

export interface DatasetSourcesDeps extends Omit<SynchronisingDeps, 'sources' | 'removal'>, Pick<SourceRoutesDeps, 'actingFor' | 'audit'> {
  readonly removal: Removal;
  readonly seal: Sealer;
}

/** What datasets follow: brings them up to it from now on. @returns the routes under `/server/mine` */
export function openDatasetSources(deps: DatasetSourcesDeps): readonly NounRoute[] {
  const { store, jobs } = deps;
  const sources = openSources(deps);
  const schedule = openSchedule({ jobs, sources });
  workOnSources({ ...deps, sources });
  workOnSchedule({ store, jobs, sources }, schedule);
  return sourceRoutes({ ...deps, sources, schedule });
}
