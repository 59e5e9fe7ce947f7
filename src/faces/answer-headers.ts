import { choiceHeaders } from '#core/choice-headers';
import type { Started } from '#core/event';
import type { Allowance, Progress } from '#core/context';
import type { Headers } from '#http/headers';

/**
 * What an answer says about its way: who answered, after how many tries, what could not be honoured, what is left of the limits.
 * @param started absent while nobody has answered yet
 */
export function answerHeaders(progress: Progress, started: Started | undefined): Headers {
  const headers = limitsOf(progress);
  if (!started) return headers;
  return [
    ...headers,
    ...onTheWay(progress),
    ...whoAnswered(progress),
    ...warningsIn(progress.warnings ? [...started.ignored, ...progress.warnings] : started.ignored),
  ];
}

/** None where the limits were not looked up. */
function limitsOf({ areLimitsKnown, requests, tokens }: Progress): Headers {
  if (!areLimitsKnown) return none;
  return requests || tokens ? [...allowance('requests', requests), ...allowance('tokens', tokens)] : unlimitedHeaders;
}

const warningsIn = (warnings: readonly string[]): Headers => (warnings.length > 0 ? ['x-dragoman-warnings', inHeader(warnings.join('; '))] : none);

/** What checks and cache had to do with it. */
function onTheWay({ cache, flags }: Progress): Headers {
  if (!cache && !flags) return none;
  return [...(cache ? [choiceHeaders.cache, cache] : none), ...(flags ? ['x-dragoman-flags', inHeader(flags.join(', '))] : none)];
}

const none: Headers = [];

/** The last target tried: for refusals too. */
export function whoAnswered({ attempts }: Progress): Headers {
  const last = attempts.at(-1);
  if (!last) return [];
  return ['x-dragoman-provider', last.provider, ...(last.region ? ['x-dragoman-region', last.region] : []), 'x-dragoman-attempts', String(attempts.length)];
}

/** Where a plan has no limit the figures say so by the largest whole number. */
const unlimited: Allowance = { limit: Number.MAX_SAFE_INTEGER, remaining: Number.MAX_SAFE_INTEGER, reset: 0 };

function allowance(what: 'requests' | 'tokens', { limit, remaining, reset }: Allowance = unlimited): Headers {
  return [`x-ratelimit-limit-${what}`, String(limit), `x-ratelimit-remaining-${what}`, String(remaining), `x-ratelimit-reset-${what}`, `${reset}s`];
}

const unlimitedHeaders = [...allowance('requests', unlimited), ...allowance('tokens', unlimited)];

/** Header values are printable ASCII, and not endless. */
const inHeader = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 2000);
