import type { Context } from '#core/context';
import { Permits } from '#core/permits';

/** A request of the native interface, as the rules about calls see it. */
export const nativeContext = ({ caller, requestId, signal }: Pick<Context, 'caller' | 'requestId' | 'signal'>): Context => ({
  requestId,
  step: 0,
  caller,
  face: 'native',
  app: caller.keyName,
  signal,
  strict: false,
  headers: {},
  permits: new Permits(),
  progress: { attempts: [] },
});
