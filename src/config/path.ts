/** The path of a setting: `['models', 'gpt-5.2', 'targets', 0]`. */
export type Path = readonly (string | number)[];

/** As it is written in messages: `models.gpt-5.2.targets[0]`. */
export const fieldOf = (path: Path): string =>
  path.reduce<string>((field, step) => (typeof step === 'number' ? `${field}[${step}]` : field ? `${field}.${step}` : step), '');

/** The path that `field` names in `value`. A name may contain dots, so the value decides where each name ends. */
export function pathOf(field: string, value: unknown): Path | undefined {
  if (field === '') return [];
  if (value === null || typeof value !== 'object') return undefined;
  for (const key of Object.keys(value)) {
    const step = Array.isArray(value) ? Number(key) : key;
    const spelled = fieldOf([step]);
    if (!field.startsWith(spelled)) continue;
    const rest = field.slice(spelled.length);
    if (rest !== '' && rest[0] !== '.' && rest[0] !== '[') continue;
    const further = pathOf(rest.replace(/^\./, ''), (value as Record<string, unknown>)[key]);
    if (further) return [step, ...further];
  }
  return undefined;
}

export const valueAt = (value: unknown, path: Path): unknown => path.reduce<unknown>((inner, step) => (has(inner, step) ? inner[step] : undefined), value);

/** How many steps of the path there are. */
export function depthOf(value: unknown, path: Path): number {
  let inner = value;
  let depth = 0;
  for (const step of path) {
    if (!has(inner, step)) break;
    inner = inner[step];
    depth++;
  }
  return depth;
}

const has = (value: unknown, step: string | number): value is Record<string | number, unknown> =>
  value !== null && typeof value === 'object' && Object.hasOwn(value, step);
