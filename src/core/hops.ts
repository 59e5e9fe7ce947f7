import { Fault } from './fault.ts';

/** Names the gateways that a request has passed, so that one that comes back ends. */
export const hopHeader = 'x-dragoman-hop';

/** Characters: some forty gateways. */
const longest = 1000;

/** @param hops what the header says. @throws Fault `invalid` for a request that has passed this gateway before */
export function requireForward(hops: string, own: string | undefined): void {
  if (hops.length > longest || !/^[\w, -]*$/.test(hops)) throw new Fault('invalid', `The header ${hopHeader} must name at most forty gateways.`);
  if (hops.split(',').some((one) => one.trim() === own))
    throw new Fault('invalid', 'This request came back to the gateway that it was sent by: the baseUrl of a provider leads to the gateway itself.');
}
