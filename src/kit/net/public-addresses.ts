import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * Tells public internet addresses from those of a machine, a private network or a cloud. https://www.iana.org/assignments/iana-ipv4-special-registry
 * and the registry of IPv6 beside it.
 */

const special = new BlockList();
for (const [network, length] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  special.addSubnet(network, length, 'ipv4');
special.addAddress('168.63.129.16', 'ipv4'); // an internal address of a cloud, in a public range
/** Only one eighth of IPv6 is allocated. The rest is private or embeds IPv4 (mapped, compatible, NAT64). */
const given = new BlockList();
given.addSubnet('2000::', 3, 'ipv6');
for (const [network, length] of [
  ['2001::', 23], // Teredo and others
  ['2001:db8::', 32],
  ['2002::', 16], // 6to4: embeds IPv4
  ['3fff::', 20],
] as const)
  special.addSubnet(network, length, 'ipv6');

/** @param addresses as the system reports them. False if one is invalid, or is that of an interface of this machine */
export function arePublic(addresses: readonly string[]): boolean {
  const own = ownAddresses();
  return addresses.every((address) => {
    const version = isIP(address);
    if (version === 0 || address.includes('%')) return false;
    const family = version === 6 ? 'ipv6' : 'ipv4';
    if (version === 6 && !given.check(address, family)) return false;
    return !special.check(address, family) && !own.check(address, family);
  });
}

/** Whether a host of a URL says by itself that it is not public: as an address, or as a name of this machine (RFC 6761). Other names are judged when they are resolved. */
export function isInner(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isIP(host) === 0 ? /(?:^|\.)localhost$/.test(host) : !arePublic([host]);
}

/** Metadata services of clouds: no host name may resolve to them, even with an exception. */
const telltale = new BlockList();
telltale.addSubnet('169.254.0.0', 16, 'ipv4');
telltale.addAddress('168.63.129.16', 'ipv4');
telltale.addAddress('100.100.100.200', 'ipv4');
telltale.addSubnet('fe80::', 10, 'ipv6');
telltale.addAddress('fd00:ec2::254', 'ipv6');

export function isMetadata(address: string): boolean {
  const version = isIP(address);
  return version === 0 || address.includes('%') || telltale.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

function ownAddresses(): BlockList {
  const own = new BlockList();
  for (const list of Object.values(networkInterfaces()))
    for (const { address } of list ?? []) {
      const version = isIP(address);
      if (version > 0 && !address.includes('%')) own.addAddress(address, version === 6 ? 'ipv6' : 'ipv4');
    }
  return own;
}
