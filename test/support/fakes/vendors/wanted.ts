/** A call of a tool that a text asks for. */
export interface WantedCall {
  /** Of the tool, or the end of it; the first tool unless said. */
  readonly name?: string;
  /** The arguments as JSON text; of a kind that fits its schema unless said. */
  readonly json?: string;
}

/**
 * `use the tool`, `use the tool twice`, `use the tool with {"path":"a"} and with {"path":"b"}`, `use the tool read with {"path":"a"}`.
 *
 * @returns undefined where no tool is asked for
 */
export function wantedCalls(text: string): readonly WantedCall[] | undefined {
  const at = text.indexOf(asking);
  if (at < 0) return undefined;
  const wanted: WantedCall[] = [];
  for (let rest = text.slice(at + asking.length); ;) {
    const found = /^(?: and)?(?: ([\w.:-]{1,128}))? with (?=\{)/.exec(rest);
    if (!found) break;
    const begin = found[0].length;
    const end = endOfJson(rest, begin);
    if (end === undefined) break;
    wanted.push({ ...(found[1] === undefined ? {} : { name: found[1] }), json: rest.slice(begin, end) });
    rest = rest.slice(end);
  }
  if (wanted.length > 0) return wanted;
  return text.startsWith(' twice', at + asking.length) ? [{}, {}] : [{}];
}

const asking = 'use the tool';

/** Where the JSON object ends that begins here. */
function endOfJson(text: string, begin: number): number | undefined {
  for (let end = text.indexOf('}', begin) + 1; end > 0; end = text.indexOf('}', end) + 1) {
    try {
      JSON.parse(text.slice(begin, end));
      return end;
    } catch {
      continue;
    }
  }
  return undefined;
}
