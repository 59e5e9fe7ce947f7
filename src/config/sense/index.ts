import type { ProviderKind } from '#core/provider-kind';
import type { Settings } from '../schema/index.ts';
import { addresses } from './addresses.ts';
import { cache, guard } from './guard.ts';
import { mcp } from './mcp.ts';
import { models } from './models.ts';
import { ownAddress } from './own-address.ts';
import { plans } from './plans.ts';
import { providers } from './providers.ts';
import { routing } from './routing.ts';
import { sources } from './sources.ts';
import { identity, processes } from './start.ts';
import type { Trouble } from './trouble.ts';

/** The problems of settings that conform to the schema but are inconsistent or meaningless. */
export function* troubles(settings: Settings, kinds: readonly ProviderKind[]): Iterable<Trouble> {
  for (const ask of [processes, identity, addresses, providers, ownAddress, models, plans, routing, cache, guard, mcp, sources]) yield* ask(settings, kinds);
}
