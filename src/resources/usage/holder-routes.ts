import { Type } from 'typebox';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { nullable, shownAs } from '#http/schemas';
import { Fault } from '#core/fault';
import type { Audit } from '#store/auditing';
import { presumedAliveSeconds, type Holder, type Holders, type Taken } from './holders.ts';

const timeOrNull = (description: string) => nullable(Type.String({ description }));

const HolderObject = Type.Object({
  id: Type.String(),
  machine: Type.String({ description: 'Host name of the machine.' }),
  startedAt: Type.String(),
  seenAt: Type.String({ description: 'Time of the last heartbeat.' }),
  closedAt: timeOrNull('Time at which the holder was closed.'),
  how: nullable(Type.Enum(['closed', 'adopted', 'written-off'])),
  by: timeOrNull('The machine or administrator that closed it; null if it closed itself.'),
  accounts: Type.Integer({ description: 'Number of accounts that it still holds leases on.' }),
});

const root = '/server/admin/holders';
const common = { scope: 'admin', owner: 'admin' } as const;

/** The admin routes of lease holders: list them, and write off one whose journal is lost. */
export function holderRoutes(holders: Holders, audit: Audit): readonly NounRoute[] {
  const find = async (id: string): Promise<Holder> => {
    const found = (await holders.list()).find((one) => one.id === id);
    if (!found) throw unknownThing('holder');
    return found;
  };
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists the processes that hold leases, and the last hundred of those that held some; newest first.',
      output: Type.Object({ items: Type.Array(HolderObject) }),
      answer: async () => ({ items: (await holders.list()).map(shown) }),
    }),
    nounRoute('POST', `${root}/:id/write-off`, {
      ...common,
      summary: 'Frees what a process holds that is gone for good with its journal: what it had not booked yet never will be.',
      output: HolderObject,
      async answer({ caller, by, params: { id = '' } }) {
        const { silentSeconds, closedAt, machine, accounts } = await find(id);
        if (closedAt === null && silentSeconds < presumedAliveSeconds)
          throw new Fault(
            'conflict',
            `This holder was alive less than ${presumedAliveSeconds} seconds ago. If it still runs, stop it: it then frees its leases itself. If it was killed, start it again on its data folder, or ask once more when ${presumedAliveSeconds} seconds have gone by.`,
          );
        const after = { how: 'written-off', machine, accounts };
        const noted: Taken['noted'] = (inside) => audit(inside, { by, action: 'holder.write-off', target: { kind: 'holder', id }, after });
        await holders.writeOff(id, { by: caller.email || caller.keyName, noted });
        return shown(await find(id));
      },
    }),
  ];
}

const shown = shownAs(HolderObject);
