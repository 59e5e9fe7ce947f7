import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

/** A certificate authority of our own, and a server's certificate from it, as PEM. Written as RFC 5280 says, since Node signs bytes but makes no certificates. */
export function certified(hosts: readonly string[]): { readonly ca: string; readonly cert: string; readonly key: string } {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const names = hosts.map((host) => der(0x82, Buffer.from(host)));
  const isAuthority = sequence(basicConstraints, der(0x01, Buffer.of(0xff)), octets(sequence(der(0x01, Buffer.of(0xff)))));
  return {
    ca: certificate({ subject: 'Scripted vendors', issuer: 'Scripted vendors', publicKey: root.publicKey, extension: isAuthority, by: root.privateKey }),
    cert: certificate({
      subject: 'A scripted vendor',
      issuer: 'Scripted vendors',
      publicKey: leaf.publicKey,
      extension: sequence(subjectAltName, octets(sequence(...names))),
      by: root.privateKey,
    }),
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  };
}

interface Certificate {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly extension: Buffer;
  readonly by: KeyObject;
}

function certificate({ subject, issuer, publicKey, extension, by }: Certificate): string {
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(subject.length)),
    sequence(ecdsaWithSha256),
    name(issuer),
    sequence(time(Date.now() - day), time(Date.now() + day)),
    name(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension)),
  );
  const whole = sequence(body, sequence(ecdsaWithSha256), der(0x03, Buffer.concat([Buffer.of(0), sign('sha256', body, by)])));
  return `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
}

function der(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), value]);
}

const sequence = (...parts: readonly Buffer[]) => der(0x30, Buffer.concat(parts));
const octets = (value: Buffer) => der(0x04, value);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const ecdsaWithSha256 = objectId('2a8648ce3d040302');
const commonName = objectId('550403');
const basicConstraints = objectId('551d13');
const subjectAltName = objectId('551d11');
const name = (text: string) => sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(text)))));
/** `YYMMDDhhmmssZ` */
const time = (milliseconds: number) =>
  der(
    0x17,
    Buffer.from(
      `${new Date(milliseconds)
        .toISOString()
        .replaceAll(/[-:T]|\..*/g, '')
        .slice(2)}Z`,
    ),
  );
