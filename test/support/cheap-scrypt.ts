import type * as crypto from 'node:crypto';

/**
 * `node:crypto` with an scrypt of a thirtieth of its cost, for tests that sign many people in and are not about what a guess costs:
 * `vi.mock('node:crypto', async (original) => (await import('…/cheap-scrypt.ts')).cheapScrypt(await original()))`. What is stored still names the full cost.
 */
export function cheapScrypt(real: typeof crypto): typeof crypto {
  const scrypt = (
    password: crypto.BinaryLike,
    salt: crypto.BinaryLike,
    bytes: number,
    options: crypto.ScryptOptions,
    done: Parameters<typeof crypto.scrypt>[3],
  ) => real.scrypt(password, salt, bytes, { ...options, N: 1024 }, done as never);
  return { ...real, scrypt: scrypt as unknown as typeof crypto.scrypt };
}
