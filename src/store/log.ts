/** Where the store tells what it mended by itself; a pino logger fits. */
export interface StoreLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export const silent: StoreLog = { info() {}, warn() {}, error() {} };
