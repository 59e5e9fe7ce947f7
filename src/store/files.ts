/* What the file system is asked for in more than one place. */
import { access, open } from 'node:fs/promises';

/** Is this the error of that code: `ENOENT`? */
export const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code;

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Makes the names in a folder last through a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
