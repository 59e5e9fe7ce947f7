import type { Context } from '#core/context';
import { Fault } from '#core/fault';
import { Permits } from '#core/permits';

/** A request of the native interface, as the rules about calls see it. */
export const nativeContext = ({ caller, requestId, address, signal }: Pick<Context, 'caller' | 'requestId' | 'address' | 'signal'>): Context => ({
  requestId,
  step: 0,
  caller,
  face: 'native',
  address,
  app: caller.keyName,
  signal,
  strict: false,
  headers: {},
  permits: new Permits(),
  progress: { attempts: [] },
});

/** An unknown model is `invalid` on the native interface. */
export function inOwnCodes(error: unknown): unknown {
  if (!(error instanceof Fault) || error.code !== 'not-found' || error.details.reason !== 'model') return error;
  return new Fault('invalid', error.message, { ...error.details, field: 'model' });
}
