import type { Call, RoutedCall } from '#core/routed-call';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import { steps } from '#core/steps';
import { inSteps } from '#core/permits';
import type { Model } from '#core/target';
import { allOut } from '../routing/all-out.ts';

export interface Alternatives {
  /** In the order in which they are to be asked. */
  readonly routes: readonly Model[];
  /** Those that the caller may use. */
  readonly models: { find(name: string): Model | undefined };
}

/**
 * Asks one model after the other: the next one where all targets of the one before are out, and the larger one where the conversation was too long for it. Each is
 * admitted and booked by itself, as steps of the same request: they differ in what they cost.
 *
 * @throws Fault as failover does
 */
export function alternating(call: Call, context: Context, alternatives: Alternatives, inner: Generate<RoutedCall>): AsyncIterable<Events> {
  return inSteps(context.progress, asked(call, context, alternatives, inner));
}

async function* asked(call: Call, context: Context, { routes, models }: Alternatives, inner: Generate<RoutedCall>): AsyncGenerator<Events> {
  const left = [...routes];
  const names = new Set<string>();
  const faults: Fault[] = [];
  const notes: string[] = [];
  let tooLong: Fault | undefined;
  for (let route = left.shift(); route && names.size < steps.mostAlternatives; route = left.shift()) {
    if (names.has(route.name)) continue; // named twice, by an alias
    const step = context.step + names.size * steps.alternative;
    names.add(route.name);
    let begun = false;
    try {
      for await (const said of inner({ ...call, route, movesOn: left.length > 0 }, { ...context, step })) {
        begun = true;
        yield notes.length > 0 ? noted(said, notes) : said;
      }
      return;
    } catch (error) {
      if (begun || context.signal.aborted || !(error instanceof Fault)) throw error;
      const larger = largerThan(route, error, context, models);
      if (larger && !names.has(larger.name)) {
        tooLong = error;
        notes.push(`model: the conversation is longer than the context of ${route.name}, ${larger.name} is asked`);
        left.unshift(larger);
      } else if (error.code === 'forbidden' && tooLong) throw tooLong;
      else if (!isElsewhere(error)) throw error;
      faults.push(error);
      delete context.progress.refused; // the next one has its own checks
    }
  }
  throw allOut(faults) ?? new Fault('internal', 'No model was asked.');
}

/** A strict caller gets the model it asked for, or none. */
function largerThan({ larger }: Model, { details }: Fault, { strict }: Context, models: Alternatives['models']): Model | undefined {
  if (larger === undefined || details.reason !== 'context-length' || strict) return undefined;
  const model = models.find(larger);
  return model?.kind === 'chat' ? model : undefined;
}

/** Might another model say yes? */
const isElsewhere = ({ code, details }: Fault) => details.elsewhere === true || code === 'overloaded' || details.reason === 'model';

const noted = (said: Events, notes: readonly string[]): Events =>
  said.map((event) => (event.type === 'started' ? { ...event, ignored: [...notes, ...event.ignored] } : event));
