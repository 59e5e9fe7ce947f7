export { decodeRequest } from './decode-request.ts';
export { encodeRequest, type Quirks } from './encode-request.ts';
