import { choiceHeaders } from '#core/choice-headers';
import { Fault } from '#core/fault';
import type { Choices, Tags } from '#core/context';
import { headerText } from '#kit/text/header-text';

const mostTargets = 8;
const longestName = 200;
const mostTags = 8;
const longestTags = 500;
const longestApp = 100;
/** As many seconds as the settings may say. */
const longestCache = 2_147_483;
const tag = /^([A-Za-z][\w.-]{0,31})=([\w.:/@+-][\w.:/@+ -]{0,63})$/;

/** All choices of a request of a noun's route. @param header the value of a header of the client @throws Fault `invalid` */
export function choicesIn(header: (name: string) => string | undefined): Choices {
  return {
    app: appIn(header('x-app-name')),
    tags: tagsIn(header(choiceHeaders.tags)),
    targets: targetsIn(header(choiceHeaders.targets)),
    strict: strictIn(header(choiceHeaders.strict)),
    cacheSeconds: cacheSecondsIn(header(choiceHeaders.cache)),
  };
}

/** The name of an application. */
export const appIn = (header: string | undefined): string | undefined => (header ? headerText(header).slice(0, longestApp) : undefined);

/** `a,b`: names of models, to be tried in this order. @throws Fault `invalid` */
export function targetsIn(header: string | undefined): readonly string[] | undefined {
  if (header === undefined) return undefined;
  const names = headerText(header)
    .split(',')
    .map((name) => name.trim());
  if (names.length > mostTargets || names.some((name) => name === '' || name.length > longestName))
    throw new Fault('invalid', `${choiceHeaders.targets} must be 1 to ${mostTargets} names of models, with commas between them.`, {
      field: choiceHeaders.targets,
    });
  return [...new Set(names)];
}

/** `team=search,env=prod`. @throws Fault `invalid` */
export function tagsIn(header: string | undefined): Tags | undefined {
  if (header === undefined) return undefined;
  const pairs = header.length > longestTags ? [null] : header.split(',').map((pair) => tag.exec(pair.trim()));
  const tags = Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2]?.trimEnd() ?? '']));
  if (pairs.length > mostTags || pairs.includes(null) || Object.keys(tags).length < pairs.length)
    throw new Fault(
      'invalid',
      `${choiceHeaders.tags} must be 1 to ${mostTags} different tags as name=value, with commas between them: names of at most 32 letters, digits, "_", "." and "-", values of at most 64 of these, ":", "/", "@", "+" and spaces.`,
      { field: choiceHeaders.tags },
    );
  return tags;
}

/** `600`, or `no-store`: 0. @throws Fault `invalid` */
export function cacheSecondsIn(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (header.toLowerCase() === 'no-store') return 0;
  const seconds = /^\d{1,7}$/.test(header) ? Number(header) : Infinity;
  if (seconds > longestCache)
    throw new Fault('invalid', `${choiceHeaders.cache} must be a number of seconds up to ${longestCache}, or no-store.`, { field: choiceHeaders.cache });
  return seconds;
}

/** `true` or `false`. @throws Fault `invalid` */
export function strictIn(header: string | undefined): boolean {
  const word = header?.toLowerCase();
  if (word === undefined || word === 'false') return false;
  if (word === 'true') return true;
  throw new Fault('invalid', `${choiceHeaders.strict} must be true or false.`, { field: choiceHeaders.strict });
}
