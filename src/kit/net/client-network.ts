import { isIP } from 'node:net';

/** The network of a client's address: of IPv6 the half that a connection is given (/64), since the other half is the client's to choose. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [plain = ''] = address.split('%', 1); // without its zone
  const [head = '', tail] = plain.split('::');
  const before = head.split(':').filter((group) => group !== '');
  const after = (tail ?? '').split(':').filter((group) => group !== '');
  const missing = tail === undefined ? 0 : 8 - before.length - after.length - (after.at(-1)?.includes('.') ? 1 : 0);
  const groups = [...before, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...after].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
