import { isAbsolute, normalize, parse } from 'node:path';
import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

export function* sources({ sources: { folders } }: Settings): Iterable<Trouble> {
  for (const [at, folder] of folders.entries()) {
    const path = ['sources', 'folders', at];
    if (!isAbsolute(folder) || normalize(`${folder}/`) !== `${folder.replace(/\/$/, '')}/`)
      yield { path, text: 'must be an absolute path without . and .. in it.' };
    else if (parse(folder).root === folder) yield { path, text: 'must not be the root of the file system.' };
  }
}
