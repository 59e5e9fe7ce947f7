import pg from 'pg';
import { arrayElements, decoders, type Decoder } from '#store/values';

export const connectMilliseconds = 3000;

/** The server takes no more connections. */
export const isTooMany = (error: unknown) => error instanceof pg.DatabaseError && error.code === '53300';

/** Is the server there? One that is full is. */
export async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ ...settingsOf(url), query_timeout: connectMilliseconds });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch (error) {
    return isTooMany(error);
  } finally {
    client.end().catch(() => {});
  }
}

/** To the driver `prefer`, `require` and `verify-ca` are `verify-full`, and it prints a warning of eight lines: it is given what it takes them for. */
const asDriven = (url: string) => (url.includes('uselibpqcompat=') ? url : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full'));

export function settingsOf(url: string): pg.ClientConfig {
  return {
    connectionString: asDriven(url),
    application_name: 'dragoman',
    connectionTimeoutMillis: connectMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: '-c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres -c jit=off',
    types: { getTypeParser },
  };
}

const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (oid, format) => {
  const own = format === 'binary' ? undefined : (decoders[oid] ?? elementsDecoder(oid));
  return own ?? theirs(oid, format);
};

function elementsDecoder(oid: number): Decoder | undefined {
  const decode = decoders[arrayElements[oid] ?? 0];
  return decode && ((text) => decodeEach(textArray(text), decode));
}

type TextArray = readonly (string | null | TextArray)[];
const theirs = pg.types.getTypeParser as (oid: number, format?: string) => Decoder;
const textArray = theirs(1009) as (text: string) => TextArray;

function decodeEach(texts: TextArray, decode: Decoder): unknown[] {
  return texts.map((one) => (one === null ? null : typeof one === 'string' ? decode(one) : decodeEach(one, decode)));
}
