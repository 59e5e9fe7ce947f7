import { Type } from 'typebox';
import { examineAll, type Check, type DoctorDeps } from './doctor.ts';
import { nounRoute, type NounRoute } from '#http/noun-route';

const CheckObject = Type.Object({
  name: Type.String({ description: 'database, provider openai, region us-east1 of platform, …' }),
  state: Type.Enum(['ok', 'warning', 'failed', 'skipped']),
  says: Type.String(),
  milliseconds: Type.Union([Type.Number(), Type.Null()], { description: 'How long it took to answer.' }),
});

/** What `dragoman doctor` asks a running server. Whoever asks while one examination runs gets that one: nobody makes this server ask providers without end. */
export function doctorRoutes(parts: DoctorDeps): readonly NounRoute[] {
  let running: Promise<readonly Check[]> | undefined;
  return [
    nounRoute({
      scope: 'admin',
      owner: 'admin',
      method: 'GET',
      path: '/server/admin/doctor',
      summary: 'Checks runtime, database, disk, clock, every provider and region. Spends nothing.',
      output: Type.Object({ items: Type.Array(CheckObject) }),
      answer: async () => ({ items: await (running ??= examineAll(parts).finally(() => (running = undefined))) }),
    }),
  ];
}
