import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * The certificates of a PEM file.
 * @throws Error with a sentence, when it cannot be read or has none
 */
export function certificatesIn(file: string): readonly string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
  const found = text.match(/-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error('has no PEM certificate in it');
  for (const one of found) {
    try {
      new X509Certificate(one);
    } catch (error) {
      throw new Error('has a certificate in it that cannot be read', { cause: error });
    }
  }
  return found;
}

/** Trusts these besides the authorities that the runtime trusts, those of NODE_EXTRA_CA_CERTS included. Made once: it reads some 150 certificates. */
export function trusting(certificates: readonly string[]): SecureContext {
  return createSecureContext({ ca: [...getCACertificates('default'), ...certificates] });
}
