import { Fault } from '#core/fault';
import { isObject } from '#core/json';

/** What a provider answered in place of a completion: its HTTP status and its code of one word, or the code of the connection's error. */
interface SaidNo {
  readonly status?: number;
  readonly code?: string;
}

/** Read from the cause of a fault, which the dialect or the connection left there. */
export function saidNo({ details: { cause } }: Fault): SaidNo {
  if (cause instanceof Error) {
    for (let one: unknown = cause; one instanceof Error; one = one.cause)
      if ('code' in one && typeof one.code === 'string' && /^(?!UND_)[A-Z][A-Z0-9_]{2,60}$/.test(one.code)) return { code: one.code };
    return {};
  }
  if (!isObject(cause)) return {};
  const { status, code, type } = cause;
  const word = typeof code === 'string' ? code : type;
  return { ...(typeof status === 'number' && status > 0 ? { status } : {}), ...(typeof word === 'string' ? { code: word } : {}) };
}

/** The fault of a target, in words that say which provider it was, its status and its code. The provider's own sentence stays as it is. */
export function namingProvider(fault: Fault, provider: string): Fault {
  const { message, details } = fault;
  const { status, code } = details.cause instanceof Error ? {} : saidNo(fault); // how a connection failed is for the operator
  const own = message.slice(0, message.length - (details.said?.length ?? 0));
  const at = /\bthe provider\b/i.exec(own);
  if (!at) return fault;
  const named = `${own.slice(0, at.index + at[0].length)} ${provider}${own.slice(at.index + at[0].length)}`;
  const why = [status, code].filter((one) => one !== undefined).join(', ');
  const text = why === '' ? named : named.replace(/\.(?= It says: $|$)/, () => ` (${why}).`);
  return new Fault(fault.code, `${text}${message.slice(own.length)}`, details);
}
