/** Searches a running server once more for what its users voted against, and compares with the passages that the answers had. */
const seconds = 30;

interface Vote {
  readonly uuid: string;
  readonly at: string;
  readonly message: string | null;
  readonly passages: readonly { readonly dataset: string; readonly filename: string; readonly text: string }[];
}

interface Found {
  readonly filename: string;
  readonly text: string;
}

export interface Replayed {
  readonly uuid: string;
  readonly message: string;
  /** The passages that the answer had, and those of them that are found now. */
  readonly before: number;
  readonly kept: number;
  readonly now: number;
  /** Why it could not be asked, as where a dataset is gone. */
  readonly problem?: string;
}

/** @param key of an administrator, whose datasets are searched */
export async function votesAgain(url: string, key: string): Promise<readonly Replayed[]> {
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(new URL(path, url), {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(seconds * 1000),
    });
    if (!response.ok) throw new Error(`${path} answered with ${response.status}: ${(await response.text()).slice(0, 300)}`);
    return response.json();
  };
  const replayed: Replayed[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = (await ask(`/server/admin/votes?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)) as {
      readonly items: readonly Vote[];
      readonly nextCursor: string | null;
    };
    for (const { uuid, message, passages } of page.items) {
      const datasets = [...new Set(passages.map(({ dataset }) => dataset))];
      if (message === null || datasets.length === 0) continue; // not kept, or answered without passages
      const before = new Set(passages.map(({ filename, text }) => `${filename} ${text}`));
      try {
        const { response } = (await ask('/server/get-dataset-results', { dataset: datasets, message })) as { readonly response: readonly Found[] };
        const kept = response.filter(({ filename, text }) => before.has(`${filename} ${text}`)).length;
        replayed.push({ uuid, message, before: before.size, kept, now: response.length });
      } catch (error) {
        replayed.push({ uuid, message, before: before.size, kept: 0, now: 0, problem: (error as Error).message });
      }
    }
    cursor = page.nextCursor;
  }
  return replayed;
}

export function printVotes(replayed: readonly Replayed[]): void {
  for (const { uuid, message, before, kept, now, problem } of replayed)
    console.log(`${uuid} ${JSON.stringify(message.slice(0, 80))}: ${problem ?? `${kept} of ${before} passages found again, among ${now}`}`);
  const asked = replayed.filter(({ problem }) => problem === undefined);
  const sum = (of: (one: Replayed) => number) => asked.reduce((total, one) => total + of(one), 0);
  console.log(`${asked.length} of ${replayed.length} questions asked again: ${sum(({ kept }) => kept)} of ${sum(({ before }) => before)} passages found again`);
}
