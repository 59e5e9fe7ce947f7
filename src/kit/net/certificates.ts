import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** Reads the certificates of a PEM file. @throws Error with a message for operators, if the file cannot be read or has no certificate */
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

/** A TLS context that trusts these certificates in addition to those of the runtime and of NODE_EXTRA_CA_CERTS. Created once, since it parses some 150 certificates. */
export const trusting = (certificates: readonly string[]): SecureContext => createSecureContext({ ca: [...getCACertificates('default'), ...certificates] });
