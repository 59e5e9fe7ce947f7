import { program } from '#config/program';
import type { Settings } from '#config/index';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { cataloguedNames } from '#providers/catalogue';
import type { OfferedModel, Providers } from '#providers/index';
import type { Log } from '#telemetry/log';

/** What the provider from the environment offers, for the lists of models. */
export interface OfferedModels {
  /** As the provider said last; before it has been asked, and where it cannot be, as the catalogue has it. The same array until that changes. */
  of(provider: string, baseUrl: string): readonly OfferedModel[];
  /** Asks the provider, now and each hour, and whenever the settings name another one. Returns at once. */
  watch(runtime: Source): void;
  /** The settings have changed. */
  changed(): void;
  close(): void;
}

type Source = () => { readonly settings: Settings; readonly providers: Pick<Providers, 'offered'> };

const everyMilliseconds = 3_600_000;
const mostMilliseconds = 30_000;

export function openOfferedModels(clock: Clock, log: Log): OfferedModels {
  let told: { readonly place: string; readonly models: readonly OfferedModel[] } | undefined;
  let next = () => {};
  let current: Source | undefined;
  let asked: string | undefined;
  let asking: AbortController | undefined;
  let stopOthers = () => {};
  let isClosed = false;
  const catalogue = cataloguedOffers();
  const refusals = refusalsTold(log);

  async function ask(settings: Settings, providers: Pick<Providers, 'offered'>): Promise<void> {
    const provider = settings.offeredBy;
    const { baseUrl } = (provider === undefined ? undefined : settings.providers[provider]) ?? {};
    if (provider === undefined || baseUrl === undefined) return;
    asking?.abort(new Error('Another provider is asked.'));
    asked = placeOf(provider, baseUrl);
    const controller = new AbortController();
    asking = controller;
    const cancel = clock.after(mostMilliseconds, () => controller.abort(new Error('Timed out.')));
    try {
      const models = await providers.offered(provider, controller.signal);
      if (models && models.length > 0) told = { place: placeOf(provider, baseUrl), models };
      else log.debug({ provider }, 'The provider does not list its models: the catalogue is shown.');
    } catch (error) {
      if (isRefused(error)) refusals.tell(provider, baseUrl);
      else log.debug({ provider }, 'The provider cannot be asked for its models: the catalogue is shown.');
    } finally {
      cancel();
    }
  }

  /** The other providers from the environment are asked once, so that one that is away is told of at the start. */
  async function askOthers({ settings, providers }: ReturnType<Source>): Promise<void> {
    if (settings.offeredBy === undefined) return;
    const others = Object.keys(settings.providers).filter((one) => one !== settings.offeredBy);
    const controller = new AbortController();
    const cancel = clock.after(mostMilliseconds, () => controller.abort(new Error('Timed out.')));
    stopOthers = () => controller.abort(new Error('The server stops.'));
    await Promise.all(
      others.map((provider) =>
        providers.offered(provider, controller.signal).catch((error: unknown) => {
          if (isClosed) return;
          if (isRefused(error)) refusals.tell(provider, settings.providers[provider]!.baseUrl);
          else log.warn({ provider }, 'This provider cannot be reached, or does not list its models as expected: they may not answer.');
        }),
      ),
    );
    cancel();
  }

  function round(): void {
    next();
    next = clock.after(everyMilliseconds, round);
    const { settings, providers } = current!();
    void ask(settings, providers);
  }

  return {
    of(provider, baseUrl) {
      const place = placeOf(provider, baseUrl);
      if (told?.place === place) return told.models;
      return catalogue(baseUrl);
    },
    watch(runtime) {
      current = runtime;
      round();
      void askOthers(runtime());
    },
    changed() {
      refusals.forget();
      const { offeredBy, providers } = current!().settings;
      const { baseUrl } = (offeredBy === undefined ? undefined : providers[offeredBy]) ?? {};
      if (offeredBy !== undefined && baseUrl !== undefined && placeOf(offeredBy, baseUrl) !== asked) round();
    },
    close() {
      isClosed = true;
      next();
      stopOthers();
      asking?.abort(new Error('The server stops.'));
    },
  };
}

/** What the catalogue has at an address; the same array for the same address. */
function cataloguedOffers(): (baseUrl: string) => readonly OfferedModel[] {
  const known = new Map<string, readonly OfferedModel[]>();
  return (baseUrl) => {
    const models = known.get(baseUrl) ?? cataloguedNames(baseUrl).map((name) => ({ name, kind: /embed/i.test(name) ? 'embedding' : 'chat' }) as const);
    known.set(baseUrl, models);
    return models;
  };
}

/** Tells of a refused key once for each provider, since it is asked each hour. */
function refusalsTold(log: Log): { tell(provider: string, baseUrl: string): void; forget(): void } {
  const told = new Set<string>();
  return {
    tell(provider, baseUrl) {
      const place = placeOf(provider, baseUrl);
      if (!told.has(place)) log.warn({ provider }, `This provider refuses its key, so calls to its models fail: check the key; ${program} doctor says more.`);
      told.add(place);
    },
    forget: () => told.clear(),
  };
}

const isRefused = (error: unknown) => error instanceof Fault && error.details.key === true;

const placeOf = (provider: string, baseUrl: string) => `${provider} ${baseUrl}`;
